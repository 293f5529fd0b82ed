/* SPDX-License-Identifier: GPL-3.0-or-later */
/* codegen/forms/lrn.h.
 *
 * What a window adds up waits in scratch memory with zeros around it, so that the sums have no
 * borders.  Channels that are neighbours (NHWC) are a row of vectors, shifted by one element a
 * channel, and several rows are squared before the first is summed: a load that spans two stores
 * which are still on their way to the cache would wait for them.  Otherwise a vector runs over
 * what lies behind the channels, and the next channel is the next vector. */
#include "codegen/forms/lrn.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/cpu/rules.h"
#include "codegen/jit/jit_short.h"
#include "ir/workspace.h"

KERNEL_DESC_BEGIN
typedef struct LrnTasks {
    LrnDesc desc;
    int64_t rows; /* of a block, where channels are neighbours */
} LrnTasks;
KERNEL_DESC(LrnTasks)

_Static_assert(3 * (LRN_CHANNELS_MOST + LRN_WINDOW_MOST) * 16 * 4 <= SCRIMP_WORK_BYTES,
               "three buffers of lines of the longest vectors fit into scratch");

enum { BLOCK_FLOATS = 2048 };

typedef struct LrnEmit LrnEmit;
typedef void LrnPass(Jit *j, LrnEmit *e, Lanes v);

struct LrnEmit {
    const LrnDesc *d;
    int64_t block; /* rows, where channels are neighbours */
    JitValue x, dy, out;
    JitValue squares, slopes, scale; /* scratch; the latter two of the gradient only */
    JitValue row0, rows;             /* the block, where channels are neighbours */
    JitValue column, n;              /* else: its columns; n NULL: a whole vector */
    LrnPass *pass;
    /* the vector in hand */
    JitValue offset; /* of its line in x, dy and out */
    JitValue at;     /* of channel 0 of its line, or of its channel, in scratch */
};

/* --- layout of scratch --- */

/* Floats between channels. */
static int64_t channel_step(const LrnDesc *d, int lanes)
{
    return d->inner == 1 ? 1 : lanes;
}

static int64_t row_floats(const LrnDesc *d, int lanes)
{
    int64_t channels = d->inner == 1 ? divide_up(d->channels, lanes) * lanes : d->channels;
    return (channels + 2 * d->before) * channel_step(d, lanes);
}

/* Whole vectors. */
static int64_t buffer_floats(const LrnDesc *d, int64_t rows, int lanes)
{
    return divide_up(row_floats(d, lanes) * rows, lanes) * lanes;
}

static int64_t blocks(const LrnDesc *d, int64_t rows, int lanes)
{
    return d->inner == 1 ? divide_up(d->outer, rows) : d->outer * divide_up(d->inner, lanes);
}

static int64_t block_elements(const LrnDesc *d, int64_t rows, int lanes)
{
    return d->channels * (d->inner == 1 ? rows : lanes);
}

static void clear(Jit *j, JitValue p, int64_t floats)
{
    JitLoop l = jit_for(j, jit_i64(j, 0), jit_i64(j, floats), jit_lanes(j), "i");
    jit_vstore(j, p, jit_index(&l), jit_vf(j, 0));
    jit_end_for(j, &l);
}

static void plan_scratch(Jit *j, LrnEmit *e, int n)
{
    int64_t floats = buffer_floats(e->d, e->block, jit_lanes(j));
    JitValue *const buffer[3] = {&e->squares, &e->slopes, &e->scale};
    JitValue base = jit_scratch(j, jit_types(j)->p_f32);
    for (int i = 0; i < n; i++)
        *buffer[i] = jit_tmp(j, jit_offset(j, base, jit_i64(j, i * floats)));
    clear(j, e->squares, n * floats);
}

/* --- the vectors of a block --- */

static void neighbour_vector(Jit *j, Lanes v, void *user)
{
    LrnEmit *e = user;
    JitValue line = e->at;
    e->at = add(j, line, v.at);
    e->pass(j, e, v);
    e->at = line;
}

static void each_row(Jit *j, LrnEmit *e)
{
    const LrnDesc *d = e->d;
    JitLoop l = jit_for(j, jit_i64(j, 0), e->rows, 1, "row");
    e->at = jit_tmp(
        j, jit_muladd_i64(j, jit_index(&l), row_floats(d, jit_lanes(j)), jit_i64(j, d->before)));
    e->offset = mul(j, jit_add(j, e->row0, jit_index(&l)), jit_i64(j, d->channels));
    each_vector(j, d->channels, 2, neighbour_vector, e);
    jit_end_for(j, &l);
}

static void each_channel(Jit *j, LrnEmit *e)
{
    const LrnDesc *d = e->d;
    int lanes = jit_lanes(j);
    JitLoop l = jit_for(j, jit_i64(j, 0), jit_i64(j, d->channels), 1, "channel");
    e->at = jit_tmp(j, jit_muladd_i64(j, jit_index(&l), lanes, jit_i64(j, d->before * lanes)));
    JitValue line = jit_muladd_i64(j, e->row0, d->channels, jit_index(&l));
    e->offset = mul(j, line, jit_i64(j, d->inner));
    e->pass(j, e, (Lanes){e->column, e->n, 0});
    jit_end_for(j, &l);
}

static void each(Jit *j, LrnEmit *e, LrnPass *pass)
{
    e->pass = pass;
    if (e->d->inner == 1)
        each_row(j, e);
    else
        each_channel(j, e);
}

/* --- passes --- */

static JitValue shifted(Jit *j, const LrnEmit *e, JitValue p, JitValue channels)
{
    JitValue by = jit_mul(j, channels, jit_i64(j, channel_step(e->d, jit_lanes(j))));
    return jit_vload(j, p, jit_add(j, e->at, by));
}

/* Sum of p over the channels from `before` below to `after` above. */
static JitValue window_sum(Jit *j, const LrnEmit *e, JitValue p, int64_t before, int64_t after)
{
    if (before + after < LRN_UNROLLED) {
        JitValue sum = shifted(j, e, p, jit_i64(j, -before));
        for (int64_t i = 1 - before; i <= after; i++)
            sum = add(j, sum, shifted(j, e, p, jit_i64(j, i)));
        return sum;
    }
    JitVar sum = jit_var(j, jit_types(j)->vf, "sum");
    jit_set(j, sum, jit_vf(j, 0));
    JitLoop l = jit_for(j, jit_i64(j, -before), jit_i64(j, after + 1), 1, "i");
    jit_set(j, sum, jit_add(j, jit_get(sum), shifted(j, e, p, jit_index(&l))));
    jit_end_for(j, &l);
    return jit_tmp(j, jit_get(sum));
}

static void square_pass(Jit *j, LrnEmit *e, Lanes v)
{
    JitValue x = load_lanes(j, e->x, e->offset, v, 0);
    jit_vstore(j, e->squares, e->at, mul(j, x, x));
}

static JitValue normaliser(Jit *j, const LrnEmit *e)
{
    JitValue sum = window_sum(j, e, e->squares, e->d->before, e->d->after);
    return add(j, jit_vf(j, e->d->k), jit_mul(j, jit_vf(j, e->d->alpha), sum));
}

/* s^beta; 3/4, which everyone uses, by square roots. */
static JitValue power(Jit *j, const LrnEmit *e, JitValue s)
{
    if (e->d->beta == 1)
        return s;
    if (e->d->beta != 0.5 && e->d->beta != 0.75)
        return jit_tmp(j, jit_vpow(j, s, jit_vf(j, e->d->beta)));
    JitValue root = jit_tmp(j, jit_vsqrt(j, s));
    return e->d->beta == 0.5 ? root : mul(j, root, jit_tmp(j, jit_vsqrt(j, root)));
}

static void forward_pass(Jit *j, LrnEmit *e, Lanes v)
{
    JitValue d = power(j, e, normaliser(j, e));
    JitValue x = load_lanes(j, e->x, e->offset, v, 0);
    store_lanes(j, e->out, e->offset, v, divide(j, x, d));
}

/* s^-beta, and dy x s^(-beta-1); lanes that do not exist would spoil the sums of those that do. */
static void slope_pass(Jit *j, LrnEmit *e, Lanes v)
{
    JitValue s = normaliser(j, e);
    JitValue scale = divide(j, jit_vf(j, 1), power(j, e, s));
    JitValue x = load_lanes(j, e->x, e->offset, v, 0);
    JitValue dy = load_lanes(j, e->dy, e->offset, v, 0);
    JitValue slope = divide(j, mul(j, mul(j, dy, x), scale), s);
    jit_vstore(j, e->scale, e->at, scale);
    jit_vstore(j, e->slopes, e->at, v.n ? valid_lanes(j, v, slope, 0) : slope);
}

static void gradient_pass(Jit *j, LrnEmit *e, Lanes v)
{
    JitValue sum = window_sum(j, e, e->slopes, e->d->after, e->d->before);
    JitValue x = load_lanes(j, e->x, e->offset, v, 0);
    JitValue dy = load_lanes(j, e->dy, e->offset, v, 0);
    JitValue factor = jit_vf(j, 2 * e->d->alpha * e->d->beta);
    JitValue through = mul(j, mul(j, factor, x), sum);
    JitValue direct = mul(j, dy, jit_vload(j, e->scale, e->at));
    store_lanes(j, e->out, e->offset, v, sub(j, direct, through));
}

static void run_passes(Jit *j, LrnEmit *e)
{
    each(j, e, square_pass);
    if (!e->dy) {
        each(j, e, forward_pass);
        return;
    }
    each(j, e, slope_pass);
    each(j, e, gradient_pass);
}

/* --- kernels --- */

static void emit_rows(Jit *j, LrnEmit *e, JitValue block)
{
    const LrnDesc *d = e->d;
    e->row0 = mul(j, block, jit_i64(j, e->block));
    e->rows = jit_min_i64(j, jit_i64(j, e->block), jit_sub(j, jit_i64(j, d->outer), e->row0));
    run_passes(j, e);
}

static void emit_columns(Jit *j, LrnEmit *e, JitValue block)
{
    int64_t inner = e->d->inner, lanes = jit_lanes(j), per_line = divide_up(inner, lanes);
    e->row0 = divide(j, block, jit_i64(j, per_line));
    e->column = mul(j, jit_mod(j, block, jit_i64(j, per_line)), jit_i64(j, lanes));
    JitValue left = sub(j, jit_i64(j, inner), e->column);
    e->n = NULL;
    JitIf whole = jit_if(j, jit_compare(j, JIT_GE, left, jit_i64(j, lanes)));
    if (inner >= lanes)
        run_passes(j, e);
    jit_else(j, &whole);
    e->n = left;
    if (inner % lanes)
        run_passes(j, e);
    jit_end_if(j, &whole);
}

static void emit_blocks(Jit *j, LrnEmit *e)
{
    int lanes = jit_lanes(j);
    JitValue first, last;
    plan_scratch(j, e, e->dy ? 3 : 1);
    task_items(j, items_per_task(block_elements(e->d, e->block, lanes)),
               blocks(e->d, e->block, lanes), &first, &last);
    JitLoop l = jit_for(j, first, last, 1, "block");
    (e->d->inner == 1 ? emit_rows : emit_columns)(j, e, jit_tmp(j, jit_index(&l)));
    jit_end_for(j, &l);
}

static LrnEmit emit_of(const void *desc)
{
    const LrnTasks *t = desc;
    return (LrnEmit){.d = &t->desc, .block = t->rows};
}

/* x, y */
static void emit_lrn(Jit *j, const void *desc)
{
    LrnEmit e = emit_of(desc);
    e.x = buf_f32(j, 0);
    e.out = buf_f32(j, 1);
    emit_blocks(j, &e);
}

/* dy, x, dx */
static void emit_lrn_grad(Jit *j, const void *desc)
{
    LrnEmit e = emit_of(desc);
    e.dy = buf_f32(j, 0);
    e.x = buf_f32(j, 1);
    e.out = buf_f32(j, 2);
    emit_blocks(j, &e);
}

static int64_t rows_of_block(const LrnDesc *d)
{
    if (d->inner > 1 || d->channels >= BLOCK_FLOATS)
        return 1;
    int64_t fit = BLOCK_FLOATS / d->channels;
    return fit < d->outer ? fit : d->outer;
}

static void lower(Lowering *l, const Node *n, KernelEmit *emit)
{
    LrnTasks t = {.desc = lrn_describe(l, n)};
    const LrnDesc *d = &t.desc;
    int lanes = l->target->vector_floats;
    CallBuf bufs[CALL_MAX_BUFS];
    int n_bufs = node_bufs(n, bufs);
    t.rows = rows_of_block(d);
    int64_t per_task = items_per_task(block_elements(d, t.rows, lanes));
    lower_pod_call(l, op_name(n->op), emit, &t, DESC_BYTES(LrnTasks),
                   divide_up(blocks(d, t.rows, lanes), per_task), bufs, n_bufs);
}

void cpu_lrn(Lowering *l, const Node *node)
{
    lower(l, node, emit_lrn);
}

void cpu_lrn_grad(Lowering *l, const Node *node)
{
    lower(l, node, emit_lrn_grad);
}
