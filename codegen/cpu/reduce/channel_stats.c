/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sums of differences, by channel: codegen/forms/moments.h. */
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/cpu/rules.h"
#include "codegen/forms/moments.h"
#include "codegen/jit/jit_short.h"

#include <math.h>

typedef struct Moments {
    const MomentsDesc *d;
    JitValue chunk, from, to;    /* outer elements of the chunk */
    JitValue start;              /* element of the image where the chunk begins: rows */
    JitValue strip, kept, sums;  /* its first channel; sums of rows; those of the first row */
    JitValue partial;            /* f32 pointer */
    JitValue row, offset[2];     /* offset: of each image */
    JitValue shift, mean, scale; /* vectors */
    int rows;                    /* side by side, from `row` on */
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
        d = mul(j, d, m->scale);
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

enum {
    ROWS = 4,         /* that are added on their own: row i of a chunk to sums i modulo ROWS */
    FEW_ROWS = 8,     /* of a chunk: read once for every vector of channels */
    STRIP = 1024,     /* channels whose sums are in the first-level cache at a time */
    SIDE_BY_SIDE = 2, /* vectors */
    LINE = 16,        /* floats of a line of the cache */
    AHEAD = 4096      /* floats from a round of rows to what is asked for */
};

static bool rows_apart(const MomentsDesc *d)
{
    return d->pitch[0] != d->channels || (moments_images(d) > 1 && d->pitch[1] != d->channels);
}

/* The outer element with which the chunk begins, or of an empty one some other that there is. */
static JitValue first_outer(Jit *j, const Moments *m)
{
    return jit_min_i64(j, m->from, jit_i64(j, m->d->outer - 1));
}

static void start_vector(Jit *j, Lanes v, Moments *m)
{
    if (m->d->op == OP_bn_stats)
        m->shift = load_lanes(j, buf_f32(j, 0), m->start, v, 0);
    if (m->d->op == OP_bn_grad_sums)
        m->mean = load_lanes(j, buf_f32(j, 2), NULL, v, 0);
}

static void start_row(Jit *j, Moments *m, JitValue row)
{
    if (m->d->op != OP_layernorm_grad_sums)
        return;
    m->mean = jit_tmp(j, load_splat(j, buf_f32(j, 2), row));
    m->scale = jit_tmp(j, load_splat(j, buf_f32(j, 3), row));
}

static void row_terms(Jit *j, Lanes v, Moments *m, JitValue row)
{
    for (int i = 0; i < moments_images(m->d); i++)
        m->offset[i] = mul(j, row, jit_i64(j, m->d->pitch[i]));
    add_terms(j, v, m);
}

static void finish_vector(Jit *j, Lanes v, Moments *m)
{
    JitValue first = accumulated(j, &m->first), second = accumulated(j, &m->second);
    settle(j, m, &first, &second);
    store_lanes(j, m->partial, NULL, v, first);
    store_lanes(j, m->partial, jit_i64(j, m->d->channels), v, second);
}

/* A vector of all rows, its sums in registers. */
static void few_rows(Jit *j, Lanes v, void *user)
{
    Moments *m = user;
    start_vector(j, v, m);
    m->first = accumulator(j, ROWS, jit_vf(j, 0));
    m->second = accumulator(j, ROWS, jit_vf(j, 0));
    JitLoop round = jit_for(j, m->from, sub(j, m->to, jit_i64(j, ROWS - 1)), ROWS, "round");
    for (v.way = 0; v.way < ROWS; v.way++) {
        JitValue row = jit_tmp(j, add(j, jit_index(&round), jit_i64(j, v.way)));
        start_row(j, m, row);
        row_terms(j, v, m, row);
    }
    jit_end_for(j, &round);
    JitLoop rest = jit_for(j, jit_index(&round), m->to, 1, "rest");
    v.way = 0;
    start_row(j, m, jit_index(&rest));
    row_terms(j, v, m, jit_index(&rest));
    jit_end_for(j, &rest);
    finish_vector(j, v, m);
}

/* More rows are read as they lie in memory, one after another or a round at a time, and sums wait
 * in scratch memory, those of a row's channels behind those of the row before.  Floats of a row's:
 */
static int64_t sums_floats(const MomentsDesc *d)
{
    int64_t channels = d->channels < STRIP ? d->channels : STRIP;
    return 2 * divide_up(channels, LINE_LANES) * LINE_LANES;
}

/* which: 0 for the first sum of the row whose sums begin at `sums`, 1 for the second. */
static JitValue sums_at(Jit *j, Lanes v, const Moments *m, JitValue sums, int which)
{
    JitValue from = jit_muladd_i64(j, sub(j, v.at, m->strip), 2, sums);
    return add(j, from, jit_i64(j, which * jit_lanes(j)));
}

/* What the hardware does not foresee: pieces of rows that lie apart, in the row AHEAD_ROWS behind
 * this one; or a round of rows side by side, some way behind it, in the order of memory. */
static void ask_ahead(Jit *j, Lanes v, const Moments *m)
{
    for (int i = 0; i < moments_images(m->d); i++) {
        JitValue pitch = jit_i64(j, m->d->pitch[i]);
        JitValue row = m->rows > 1 ? m->row : add(j, m->row, jit_i64(j, AHEAD_ROWS));
        JitValue at = jit_muladd_i64(j, v.at, m->rows, mul(j, row, pitch));
        JitValue p = jit_tmp(j, jit_offset(j, buf_f32(j, i), at));
        int64_t ahead = m->rows > 1 ? AHEAD : 0;
        for (int64_t k = 0; k < m->rows * jit_lanes(j); k += LINE)
            jit_prefetch_line(j, jit_offset(j, p, jit_i64(j, ahead + k)), false);
    }
}

static void add_rows(Jit *j, Lanes v, void *user)
{
    Moments *m = user;
    start_vector(j, v, m);
    if (m->rows > 1 || (rows_apart(m->d) && v.way * jit_lanes(j) % LINE == 0))
        ask_ahead(j, v, m);
    v.way = 0;
    for (int r = 0; r < m->rows; r++) {
        JitValue sums = add(j, m->sums, jit_i64(j, r * sums_floats(m->d)));
        JitValue first = jit_tmp(j, sums_at(j, v, m, sums, 0));
        JitValue second = jit_tmp(j, sums_at(j, v, m, sums, 1));
        m->first = accumulator(j, 1, jit_vload_aligned(j, m->kept, first));
        m->second = accumulator(j, 1, jit_vload_aligned(j, m->kept, second));
        row_terms(j, v, m, add(j, m->row, jit_i64(j, r)));
        jit_vstore_aligned(j, m->kept, first, accumulated(j, &m->first));
        jit_vstore_aligned(j, m->kept, second, accumulated(j, &m->second));
    }
}

static void finish_kept(Jit *j, Lanes v, void *user)
{
    Moments *m = user;
    m->first = accumulator(j, ROWS, jit_vf(j, 0));
    m->second = accumulator(j, ROWS, jit_vf(j, 0));
    for (v.way = 0; v.way < ROWS; v.way++) {
        JitValue sums = jit_i64(j, v.way * sums_floats(m->d));
        accumulate(j, &m->first, v, jit_vload_aligned(j, m->kept, sums_at(j, v, m, sums, 0)));
        accumulate(j, &m->second, v, jit_vload_aligned(j, m->kept, sums_at(j, v, m, sums, 1)));
    }
    finish_vector(j, v, m);
}

/* The vectors of a strip. */
static void each_channel(Jit *j, Moments *m, EachVector *body, int ways)
{
    int64_t channels = m->d->channels;
    if (channels <= STRIP) {
        each_vector(j, channels, ways, body, m);
        return;
    }
    JitValue to = jit_min_i64(j, add(j, m->strip, jit_i64(j, STRIP)), jit_i64(j, channels));
    each_vector_between(j, m->strip, jit_tmp(j, to), channels, ways, body, m);
}

/* `rows` rows from `row` on, to the sums of as many. */
static void some_rows(Jit *j, Moments *m, JitValue row, JitValue sums, int rows)
{
    m->row = row;
    m->sums = sums;
    m->rows = rows;
    if (rows == 1)
        start_row(j, m, row);
    each_channel(j, m, add_rows, SIDE_BY_SIDE);
}

static void zero_sums(Jit *j, const Moments *m)
{
    JitValue n = jit_i64(j, ROWS * sums_floats(m->d));
    JitLoop l = jit_for(j, jit_i64(j, 0), n, jit_lanes(j), "at");
    jit_vstore_aligned(j, m->kept, jit_index(&l), jit_vf(j, 0));
    jit_end_for(j, &l);
}

/* Of one image, whose rows lie together, a round of rows at a time takes 0.8 of the time that they
 * take one after another; of two, twice as long (MobileNetV2's on a Zen 4 with AVX2). */
static bool reads_rounds(const MomentsDesc *d)
{
    return moments_images(d) == 1 && !rows_apart(d) && d->channels <= STRIP;
}

static void add_round(Jit *j, Moments *m, JitValue from)
{
    if (reads_rounds(m->d)) {
        some_rows(j, m, from, jit_i64(j, 0), ROWS);
        return;
    }
    JitLoop l = jit_for(j, jit_i64(j, 0), jit_i64(j, ROWS), 1, "way");
    JitValue sums = jit_tmp(j, mul(j, jit_index(&l), jit_i64(j, sums_floats(m->d))));
    some_rows(j, m, jit_tmp(j, add(j, from, jit_index(&l))), sums, 1);
    jit_end_for(j, &l);
}

static void many_rows(Jit *j, Moments *m)
{
    m->kept = jit_tmp(j, jit_scratch(j, jit_types(j)->p_f32));
    JitLoop strip = jit_for(j, jit_i64(j, 0), jit_i64(j, m->d->channels), STRIP, "strip");
    m->strip = jit_index(&strip);
    zero_sums(j, m);
    JitLoop round = jit_for(j, m->from, sub(j, m->to, jit_i64(j, ROWS - 1)), ROWS, "round");
    add_round(j, m, jit_index(&round));
    jit_end_for(j, &round);
    JitLoop rest = jit_for(j, jit_index(&round), m->to, 1, "rest");
    some_rows(j, m, jit_index(&rest), jit_i64(j, 0), 1);
    jit_end_for(j, &rest);
    each_channel(j, m, finish_kept, 1);
    jit_end_for(j, &strip);
}

static void channel_rows(Jit *j, Moments *m)
{
    m->start = jit_tmp(j, mul(j, first_outer(j, m), jit_i64(j, m->d->pitch[0])));
    if (divide_up(m->d->outer, m->d->chunks) <= FEW_ROWS)
        each_vector(j, m->d->channels, 1, few_rows, m);
    else
        many_rows(j, m);
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
        m->shift = load_splat(j, buf_f32(j, 0), plane_offset(j, m->d, first_outer(j, m), channel));
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

/* The elements of every channel with which the chunk begins. */
static JitValue first_elements(Jit *j, Lanes v, const Moments *m)
{
    const JitTypes *t = jit_types(j);
    const MomentsDesc *d = m->d;
    JitValue outer = jit_tmp(j, first_outer(j, m));
    if (d->inner == 1)
        return load_lanes(j, buf_f32(j, 0), mul(j, outer, jit_i64(j, d->pitch[0])), v, 0);
    JitVar lanes = jit_array_var(j, t->f32, jit_lanes(j), "first");
    JitValue p = jit_array_ptr(j, lanes, t->p_f32);
    jit_vstore_aligned(j, p, jit_i64(j, 0), vf(j, 0));
    JitLoop l = jit_for(j, jit_i64(j, 0), v.n ? v.n : jit_i64(j, jit_lanes(j)), 1, "lane");
    JitValue at = plane_offset(j, d, outer, add(j, v.at, jit_index(&l)));
    jit_store(j, p, jit_index(&l), jit_load(j, buf_f32(j, 0), jit_tmp(j, at)));
    jit_end_for(j, &l);
    return jit_vload_aligned(j, p, jit_i64(j, 0));
}

/* The mean of a chunk, less what the first one begins with, and how many elements it has. */
static JitValue chunk_mean(Jit *j, Join *t, Lanes v, JitValue chunk, JitValue start, JitValue *n)
{
    set_chunk(j, &t->m, chunk);
    JitValue p = partial_of(j, t->m.d, t->work, chunk), zero = jit_vf(j, 0);
    JitValue from = jit_tmp(j, sub(j, first_elements(j, v, &t->m), start));
    *n = chunk_count(j, &t->m);
    JitValue mean = jit_tmp(j, add(j, from, load_lanes(j, p, NULL, v, 0)));
    return jit_vchoose(j, JIT_EQ, *n, zero, zero, mean);
}

static void join_stats(Jit *j, Lanes v, Join *t)
{
    const MomentsDesc *d = t->m.d;
    JitValue n, share = jit_vf(j, 1 / ((double)d->outer * (double)d->inner));
    CompensatedSum means = compensated_sum(j), parts = compensated_sum(j);
    t->m.from = jit_i64(j, 0);
    JitValue start = jit_tmp(j, first_elements(j, v, &t->m));
    JitLoop c = jit_for(j, jit_i64(j, 0), jit_i64(j, d->chunks), 1, "chunk");
    JitValue mean = chunk_mean(j, t, v, jit_index(&c), start, &n);
    compensated_add(j, &means, mul(j, mul(j, n, share), mean));
    jit_end_for(j, &c);
    JitValue total = compensated_total(j, &means);
    c = jit_for(j, jit_i64(j, 0), jit_i64(j, d->chunks), 1, "chunk");
    JitValue away = sub(j, chunk_mean(j, t, v, jit_index(&c), start, &n), total);
    JitValue p = partial_of(j, d, t->work, jit_index(&c));
    JitValue squares = load_lanes(j, p, jit_i64(j, d->channels), v, 0);
    JitValue between = mul(j, mul(j, n, share), mul(j, away, away)), zero = jit_vf(j, 0);
    between = jit_vchoose(j, JIT_EQ, n, zero, zero, between);
    compensated_add(j, &parts, add(j, mul(j, squares, share), between));
    jit_end_for(j, &c);
    store_lanes(j, buf_f32(j, t->out), NULL, v, add(j, total, start));
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

/* Chunks of rows, of images that lie densely. */
static CallSpans chunks_of_rows(Pool *pool, const MomentsDesc *d)
{
    CallSpans reads = {.n = 0};
    for (int i = 0; i < moments_images(d); i++)
        if (d->inner == 1 && d->pitch[i] == d->channels)
            reads.buf[reads.n++] = i;
    if (!reads.n)
        return reads;
    TaskSpans *s = task_spans_new(pool, d->chunks, 1);
    for (int64_t i = 0; s && i < d->chunks; i++) {
        s->from[i] = span_part(i, d->outer, d->chunks) * d->channels;
        s->to[i] = span_part(i + 1, d->outer, d->chunks) * d->channels;
    }
    reads.spans = s;
    return reads;
}

static void lower(Lowering *l, const Node *n)
{
    MomentsDesc d = moments_describe(l, n);
    CallBuf bufs[8];
    int work = moments_bufs(l, n, bufs);
    int64_t per_chunk = d.inner == 1 ? 1 : d.channels;
    CallDraft call = pod_call(l, op_name(n->op), &d, DESC_BYTES(MomentsDesc), d.chunks * per_chunk,
                              bufs, work + 1);
    call.emit = emit_moments;
    call.reads = chunks_of_rows(l->pool, &d);
    pod_count_work(l, &call);
    if (call.n_tasks)
        lower_call(l, call);
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
