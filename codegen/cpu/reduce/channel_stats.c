/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sums of differences, by channel: codegen/forms/moments.h. */
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/cpu/rules.h"
#include "codegen/forms/moments.h"
#include "codegen/jit/jit_short.h"

#include <math.h>

typedef struct Moments {
    const MomentsDesc *d;
    JitValue chunk, from, to;         /* outer elements of the chunk */
    JitValue begin, end, kept;        /* of a block of it; sums between blocks */
    JitValue partial;                 /* f32 pointer */
    JitValue offset[2], row, channel; /* offset: of each image */
    JitValue shift, mean;             /* vectors */
    Accumulator first, second;
} Moments;

static JitValue load_splat(Jit *j, JitValue p, JitValue at)
{
    return splat(j, jit_load(j, p, at));
}

/* Adds the terms of one vector: (d, d^2) for statistics, (dy * xhat, dy) for gradients; 1/sigma of
 * batch norm follows in the join. */
static void add_terms(Jit *j, Lanes v, Moments *m)
{
    if (m->d->op == OP_bn_stats) {
        JitValue x = load_lanes(j, buf_f32(j, 0), m->offset[0], v, 0);
        JitValue d = valid_lanes(j, v, sub(j, x, m->shift), 0);
        accumulate(j, &m->first, v, d);
        accumulate(j, &m->second, v, mul(j, d, d));
        return;
    }
    JitValue dy = load_lanes(j, buf_f32(j, 0), m->offset[0], v, 0);
    JitValue d = sub(j, load_lanes(j, buf_f32(j, 1), m->offset[1], v, 0), m->mean);
    if (m->d->op == OP_layernorm_grad_sums)
        d = mul(j, d, load_splat(j, buf_f32(j, 3), m->row));
    accumulate(j, &m->first, v, valid_lanes(j, v, mul(j, dy, d), 0));
    accumulate(j, &m->second, v, dy);
}

static JitValue chunk_count(Jit *j, const Moments *m)
{
    const JitTypes *t = jit_types(j);
    JitValue n = jit_mul(j, jit_sub(j, m->to, m->from), jit_i64(j, m->d->inner));
    return splat(j, jit_cast(j, n, t->f32));
}

/* (sum of d, sum of d^2) -> mean and sum of squared deviations; an empty chunk gives zeros, and
 * must not divide.  Squares that overflow give infinity, not NaN. */
static void settle(Jit *j, const Moments *m, JitValue *first, JitValue *second)
{
    if (m->d->op != OP_bn_stats)
        return;
    JitValue n = jit_vmax(j, chunk_count(j, m), jit_vf(j, 1));
    JitValue mean = divide(j, *first, n);
    JitValue rest = sub(j, *second, mul(j, *first, mean));
    JitValue inf = vf(j, (double)INFINITY), squares = *second;
    *first = mean;
    *second = jit_vchoose(j, JIT_EQ, squares, inf, inf, jit_vmax(j, rest, jit_vf(j, 0)));
}

/* --- channels last: vectors across channels --- */

static void row_terms(Jit *j, Lanes v, Moments *m, JitValue row)
{
    const MomentsDesc *d = m->d;
    m->row = row;
    for (int i = 0; i < moments_images(d); i++)
        m->offset[i] = mul(j, row, jit_i64(j, d->pitch[i]));
    if (d->op == OP_layernorm_grad_sums)
        m->mean = load_splat(j, buf_f32(j, 2), row);
    add_terms(j, v, m);
}

enum {
    ROWS = 4,               /* that are added on their own */
    LINE = 16,              /* floats of a line of the cache */
    BLOCK_BYTES = 16 * 1024 /* of images that are read before the next channels are */
};

static void start_vector(Jit *j, Lanes v, Moments *m)
{
    if (m->d->op == OP_bn_stats)
        m->shift = load_lanes(j, buf_f32(j, 0), NULL, v, 0);
    if (m->d->op == OP_bn_grad_sums)
        m->mean = load_lanes(j, buf_f32(j, 2), NULL, v, 0);
    m->first = accumulator(j, ROWS, jit_vf(j, 0));
    m->second = accumulator(j, ROWS, jit_vf(j, 0));
}

/* Rows of a block: whole rounds of ROWS, so that blocks do not change the order of a sum. */
static int64_t block_rows(const MomentsDesc *d)
{
    int64_t bytes = 0;
    for (int i = 0; i < moments_images(d); i++)
        bytes += 4 * d->pitch[i];
    int64_t rows = BLOCK_BYTES / bytes / ROWS * ROWS;
    return rows < ROWS ? ROWS : rows;
}

/* Sums between blocks: first and second of ROWS rows, of each vector of channels. */
static int64_t kept_floats(const MomentsDesc *d, const Jit *j)
{
    return 2 * ROWS * divide_up(d->channels, jit_lanes(j)) * jit_lanes(j);
}

static JitValue kept_at(Jit *j, Lanes v, int which)
{
    return jit_muladd_i64(j, v.at, 2 * ROWS, jit_i64(j, which * jit_lanes(j)));
}

static void load_kept(Jit *j, Lanes v, Moments *m)
{
    JitIf first = jit_if(j, jit_compare(j, JIT_GT, m->begin, m->from));
    for (int k = 0; k < ROWS; k++) {
        jit_set(j, m->first.var[k], jit_vload_aligned(j, m->kept, kept_at(j, v, 2 * k)));
        jit_set(j, m->second.var[k], jit_vload_aligned(j, m->kept, kept_at(j, v, 2 * k + 1)));
    }
    jit_end_if(j, &first);
}

static void store_kept(Jit *j, Lanes v, Moments *m)
{
    for (int k = 0; k < ROWS; k++) {
        jit_vstore_aligned(j, m->kept, kept_at(j, v, 2 * k), jit_get(m->first.var[k]));
        jit_vstore_aligned(j, m->kept, kept_at(j, v, 2 * k + 1), jit_get(m->second.var[k]));
    }
}

static void finish_vector(Jit *j, Lanes v, Moments *m, JitValue row)
{
    JitLoop one = jit_for(j, row, m->to, 1, "r");
    v.way = 0;
    row_terms(j, v, m, jit_index(&one));
    jit_end_for(j, &one);
    JitValue first = accumulated(j, &m->first), second = accumulated(j, &m->second);
    settle(j, m, &first, &second);
    store_lanes(j, m->partial, NULL, v, first);
    store_lanes(j, m->partial, jit_i64(j, m->d->channels), v, second);
}

/* The share of the block after the next that these rows and channels ask for, in the order of
 * memory: reading a few channels of each row, the hardware foresees nothing. */
static void ask_ahead(Jit *j, Lanes v, const Moments *m, JitValue row)
{
    int64_t floats = ROWS * jit_lanes(j), rows = block_rows(m->d);
    JitValue turn = jit_muladd_i64(j, jit_sub(j, row, m->begin), jit_lanes(j),
                                   jit_mul(j, v.at, jit_i64(j, rows)));
    JitValue from = jit_add(j, m->end, jit_i64(j, rows));
    for (int i = 0; i < moments_images(m->d); i++) {
        JitValue at = jit_muladd_i64(j, from, m->d->pitch[i], turn);
        JitValue p = jit_tmp(j, jit_offset(j, buf_f32(j, i), at));
        for (int64_t k = 0; k < floats; k += LINE)
            jit_prefetch_line(j, jit_offset(j, p, jit_i64(j, k)), false);
    }
}

/* Rows of one block. */
static void channel_vector(Jit *j, Lanes v, void *user)
{
    Moments *m = user;
    start_vector(j, v, m);
    load_kept(j, v, m);
    JitLoop four = jit_for(j, m->begin, jit_sub(j, m->end, jit_i64(j, ROWS - 1)), ROWS, "r");
    ask_ahead(j, v, m, jit_index(&four));
    for (int k = 0; k < ROWS; k++) {
        v.way = k;
        row_terms(j, v, m, add(j, jit_index(&four), jit_i64(j, k)));
    }
    jit_end_for(j, &four);
    JitIf last = jit_if(j, jit_compare(j, JIT_GE, m->end, m->to));
    finish_vector(j, v, m, jit_index(&four));
    jit_else(j, &last);
    store_kept(j, v, m);
    jit_end_if(j, &last);
}

/* Block by block, which the cache keeps for all channels; one of no rows where the chunk has none.
 */
static void channel_rows(Jit *j, Moments *m)
{
    JitValue some = jit_max_i64(j, m->to, jit_add(j, m->from, jit_i64(j, 1)));
    int64_t rows = block_rows(m->d);
    if (4 * kept_floats(m->d, j) > SCRIMP_SCRATCH_BYTES)
        rows = m->d->outer;
    m->kept = jit_tmp(j, jit_scratch(j, jit_types(j)->p_f32));
    JitLoop block = jit_for(j, m->from, some, rows, "block");
    m->begin = jit_index(&block);
    m->end = jit_tmp(j, jit_min_i64(j, jit_add(j, m->begin, jit_i64(j, rows)), m->to));
    each_vector(j, m->d->channels, 1, channel_vector, m);
    jit_end_for(j, &block);
}

/* --- channels before the last dims: vectors along the plane of a channel --- */

static void plane_vector(Jit *j, Lanes v, void *user)
{
    add_terms(j, v, user);
}

static JitValue plane_offset(Jit *j, const MomentsDesc *d, JitValue outer, JitValue channel)
{
    JitValue plane = jit_muladd_i64(j, outer, d->channels, channel);
    return mul(j, plane, jit_i64(j, d->inner));
}

static void plane(Jit *j, Moments *m, JitValue channel)
{
    if (m->d->op == OP_bn_stats)
        m->shift = load_splat(j, buf_f32(j, 0), plane_offset(j, m->d, jit_i64(j, 0), channel));
    else
        m->mean = load_splat(j, buf_f32(j, 2), channel);
    m->first = line_accumulator(j, jit_vf(j, 0));
    m->second = line_accumulator(j, jit_vf(j, 0));
    JitLoop o = jit_for(j, m->from, m->to, 1, "o");
    m->offset[0] = m->offset[1] = plane_offset(j, m->d, jit_index(&o), channel);
    each_vector(j, m->d->inner, line_ways(j), plane_vector, m);
    jit_end_for(j, &o);
    JitValue first = splat(j, line_sum(j, &m->first));
    JitValue second = splat(j, line_sum(j, &m->second));
    settle(j, m, &first, &second);
    Lanes one = {channel, jit_i64(j, 1), 0};
    store_lanes(j, m->partial, NULL, one, first);
    store_lanes(j, m->partial, jit_i64(j, m->d->channels), one, second);
}

/* --- kernels --- */

static int work_buf(const MomentsDesc *d)
{
    return d->op == OP_bn_stats ? 1 : 4;
}

static void set_chunk(Jit *j, Moments *m, JitValue chunk)
{
    JitValue next = jit_add(j, chunk, jit_i64(j, 1));
    m->chunk = chunk;
    m->from = part_start(j, chunk, m->d->outer, m->d->chunks);
    m->to = part_start(j, next, m->d->outer, m->d->chunks);
}

static JitValue partial_of(Jit *j, const MomentsDesc *d, int buf, JitValue chunk)
{
    JitValue floats = jit_i64(j, d->partial_bytes / 4);
    return jit_tmp(j, jit_offset(j, buf_f32(j, buf), jit_mul(j, chunk, floats)));
}

/* Task: a chunk (channels last), or a chunk of one channel. */
static void emit_moments(Jit *j, const void *desc)
{
    Moments m = {.d = desc};
    int64_t per_chunk = m.d->inner == 1 ? 1 : m.d->channels;
    JitLoop task = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "task");
    set_chunk(j, &m, divide(j, jit_index(&task), jit_i64(j, per_chunk)));
    m.partial = partial_of(j, m.d, work_buf(m.d), m.chunk);
    if (m.d->inner == 1)
        channel_rows(j, &m);
    else
        plane(j, &m, jit_tmp(j, jit_mod(j, jit_index(&task), jit_i64(j, per_chunk))));
    jit_end_for(j, &task);
}

typedef struct Join {
    Moments m;
    int work, out; /* buffers */
} Join;

/* n * mean, and n */
static JitValue weighted_mean(Jit *j, Join *t, Lanes v, JitValue *n)
{
    JitValue p = partial_of(j, t->m.d, t->work, t->m.chunk);
    *n = chunk_count(j, &t->m);
    return load_lanes(j, p, NULL, v, 0);
}

/* The first element of every channel: the shift. */
static JitValue first_elements(Jit *j, Lanes v, const MomentsDesc *d)
{
    const JitTypes *t = jit_types(j);
    if (d->inner == 1)
        return load_lanes(j, buf_f32(j, 0), NULL, v, 0);
    JitVar lanes = jit_array_var(j, t->f32, jit_lanes(j), "shift");
    JitValue p = jit_array_ptr(j, lanes, t->p_f32);
    jit_vstore_aligned(j, p, jit_i64(j, 0), vf(j, 0));
    JitLoop l = jit_for(j, jit_i64(j, 0), v.n ? v.n : jit_i64(j, jit_lanes(j)), 1, "lane");
    JitValue at = jit_mul(j, jit_add(j, v.at, jit_index(&l)), jit_i64(j, d->inner));
    jit_store(j, p, jit_index(&l), jit_load(j, buf_f32(j, 0), jit_tmp(j, at)));
    jit_end_for(j, &l);
    return jit_vload_aligned(j, p, jit_i64(j, 0));
}

static void join_stats(Jit *j, Lanes v, Join *t)
{
    const MomentsDesc *d = t->m.d;
    JitValue n, share = jit_vf(j, 1 / ((double)d->outer * (double)d->inner));
    CompensatedSum means = compensated_sum(j), parts = compensated_sum(j);
    JitLoop c = jit_for(j, jit_i64(j, 0), jit_i64(j, d->chunks), 1, "chunk");
    set_chunk(j, &t->m, jit_index(&c));
    JitValue mean = weighted_mean(j, t, v, &n);
    compensated_add(j, &means, mul(j, mul(j, n, share), mean));
    jit_end_for(j, &c);
    JitValue total = compensated_total(j, &means);
    c = jit_for(j, jit_i64(j, 0), jit_i64(j, d->chunks), 1, "chunk");
    set_chunk(j, &t->m, jit_index(&c));
    JitValue away = sub(j, weighted_mean(j, t, v, &n), total);
    JitValue p = partial_of(j, d, t->work, t->m.chunk);
    JitValue squares = load_lanes(j, p, jit_i64(j, d->channels), v, 0);
    JitValue between = mul(j, mul(j, n, share), mul(j, away, away)), zero = jit_vf(j, 0);
    between = jit_vchoose(j, JIT_EQ, n, zero, zero, between);
    compensated_add(j, &parts, add(j, mul(j, squares, share), between));
    jit_end_for(j, &c);
    store_lanes(j, buf_f32(j, t->out), NULL, v, add(j, total, first_elements(j, v, d)));
    store_lanes(j, buf_f32(j, t->out + 1), NULL, v, compensated_total(j, &parts));
}

static JitValue join_one(Jit *j, Lanes v, Join *t, int which)
{
    const MomentsDesc *d = t->m.d;
    CompensatedSum sum = compensated_sum(j);
    JitLoop c = jit_for(j, jit_i64(j, 0), jit_i64(j, d->chunks), 1, "chunk");
    JitValue p = partial_of(j, d, t->work, jit_index(&c));
    compensated_add(j, &sum, load_lanes(j, p, jit_i64(j, which * d->channels), v, 0));
    jit_end_for(j, &c);
    return compensated_total(j, &sum);
}

static void join_sums(Jit *j, Lanes v, Join *t)
{
    JitValue first = join_one(j, v, t, 0), second = join_one(j, v, t, 1);
    if (t->m.d->op == OP_bn_grad_sums) {
        JitValue var = load_lanes(j, buf_f32(j, 3), NULL, v, 0);
        JitValue sigma = jit_vsqrt(j, add(j, var, jit_vf(j, t->m.d->eps)));
        first = divide(j, first, sigma);
    }
    store_lanes(j, buf_f32(j, t->out), NULL, v, first);
    store_lanes(j, buf_f32(j, t->out + 1), NULL, v, second);
}

static void join_vector(Jit *j, Lanes v, void *user)
{
    Join *t = user;
    if (t->m.d->op == OP_bn_stats)
        join_stats(j, v, t);
    else
        join_sums(j, v, t);
}

enum { JOIN_CHANNELS = 64 };

static void emit_join(Jit *j, const void *desc)
{
    Join t = {.m = {.d = desc}};
    JitValue first, last;
    t.work = work_buf(t.m.d);
    t.out = t.work + 1;
    task_items(j, JOIN_CHANNELS, t.m.d->channels, &first, &last);
    each_vector_between(j, first, last, t.m.d->channels, 1, join_vector, &t);
}

static void lower(Lowering *l, const Node *n)
{
    MomentsDesc d = moments_describe(l, n);
    CallBuf bufs[8];
    int work = moments_bufs(l, n, bufs);
    int64_t per_chunk = d.inner == 1 ? 1 : d.channels;
    lower_pod_call(l, op_name(n->op), emit_moments, &d, DESC_BYTES(MomentsDesc),
                   d.chunks * per_chunk, bufs, work + 1);
    lower_pod_join(l, "moments_join", emit_join, &d, DESC_BYTES(MomentsDesc),
                   divide_up(d.channels, JOIN_CHANNELS), bufs, work + 3);
}

void cpu_bn_stats(Lowering *l, const Node *n)
{
    lower(l, n);
}

void cpu_bn_grad_sums(Lowering *l, const Node *n)
{
    lower(l, n);
}

void cpu_layernorm_grad_sums(Lowering *l, const Node *n)
{
    lower(l, n);
}
