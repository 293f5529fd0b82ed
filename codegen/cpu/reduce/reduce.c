/* SPDX-License-Identifier: GPL-3.0-or-later */
/* sum, mean, reduce_max and sumsq over any axes.
 *
 * Neighbouring axes of one kind are merged.  When the last axis is kept, vectors lie across results
 * and walk the reduced elements; when it is reduced, vectors lie along it and are folded at the
 * end.  A chunked reduction (ir/workspace.h) computes partial results in the workspace, which a
 * second call joins in order. */
#include "codegen/cpu/point/point_jit.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/cpu/rules.h"
#include "codegen/forms/point.h"
#include "codegen/forms/reduction.h"
#include "codegen/jit/jit_short.h"
#include "ir/support/bug.h"
#include "ir/workspace.h"

#include <math.h>

static const double minus_inf = -(double)INFINITY;

static bool is_max(const ReduceDesc *d)
{
    return d->op == OP_reduce_max;
}

static double start_of(const ReduceDesc *d)
{
    return is_max(d) ? minus_inf : 0;
}

static JitValue offset_of(Jit *j, const Digits *set, JitValue i)
{
    JitValue at = jit_i64(j, 0);
    for (int64_t k = set->n - 1; k >= 0; k--) {
        JitValue n = jit_i64(j, set->dim[k]), digit = i;
        if (k > 0) {
            digit = jit_mod(j, i, n);
            i = divide(j, i, n);
        }
        at = jit_muladd_i64(j, digit, set->stride[k], at);
    }
    return jit_tmp(j, at);
}

/* --- one term --- */

typedef struct Fold {
    const ReduceDesc *d;
    JitValue x, offset;
    Accumulator acc;
} Fold;

static void fold_vector(Jit *j, Lanes v, void *user)
{
    Fold *f = user;
    JitValue x = load_lanes(j, f->x, f->offset, v, start_of(f->d));
    JitVar acc = f->acc.var[v.way % f->acc.n];
    if (f->d->op == OP_sumsq)
        x = mul(j, x, x);
    jit_set(j, acc, is_max(f->d) ? jit_vmax(j, x, jit_get(acc)) : jit_add(j, jit_get(acc), x));
}

static JitValue folded(Jit *j, Fold *f)
{
    JitValue v = jit_get(f->acc.var[0]);
    if (!is_max(f->d))
        return accumulated(j, &f->acc);
    for (int i = 1; i < f->acc.n; i++)
        v = jit_vmax(j, v, jit_get(f->acc.var[i]));
    return jit_tmp(j, v);
}

/* Largest lane; NaN wins. */
static JitValue max_lane(Jit *j, JitValue v)
{
    const JitTypes *t = jit_types(j);
    JitVar lanes = jit_array_var(j, t->f32, jit_lanes(j), "lanes"), m = jit_var(j, t->f32, "max");
    JitValue p = jit_array_ptr(j, lanes, t->p_f32);
    jit_vstore_aligned(j, p, jit_i64(j, 0), v);
    jit_set(j, m, jit_load(j, p, jit_i64(j, 0)));
    JitLoop l = jit_for(j, jit_i64(j, 1), jit_i64(j, jit_lanes(j)), 1, "lane");
    JitValue x = jit_load(j, p, jit_index(&l));
    JitIf larger = jit_if(j, jit_compare(j, JIT_GT, x, jit_get(m)));
    jit_set(j, m, x);
    jit_end_if(j, &larger);
    JitIf nan = jit_if(j, jit_compare(j, JIT_NE, x, x));
    jit_set(j, m, x);
    jit_end_if(j, &nan);
    jit_end_for(j, &l);
    return jit_get(m);
}

/* --- where a result goes --- */

/* Where partial results of a chunk start; the output itself when not chunked. */
static JitValue target(Jit *j, const ReduceDesc *d, JitValue chunk)
{
    if (!d->chunks)
        return buf_f32(j, 1);
    return jit_tmp(
        j, jit_offset(j, buf_f32(j, 1), jit_mul(j, chunk, jit_i64(j, d->partial_bytes / 4))));
}

static JitValue finished(Jit *j, const ReduceDesc *d, JitValue v)
{
    return d->scale == 1 || d->chunks ? v : mul(j, v, jit_vf(j, d->scale));
}

/* --- last dim kept --- */

typedef struct Columns {
    Fold f;
    JitValue kept_base, result_base, from, to, out;
} Columns;

/* One vector of results: all reduced elements, four at a time. */
static void column_vector(Jit *j, Lanes v, void *user)
{
    enum { ROWS = 4 };
    Columns *c = user;
    Fold *f = &c->f;
    const Digits *r = &f->d->reduced;
    f->acc = accumulator(j, ROWS, jit_vf(j, start_of(f->d)));
    JitLoop four = jit_for(j, c->from, jit_sub(j, c->to, jit_i64(j, ROWS - 1)), ROWS, "r");
    for (int k = 0; k < ROWS; k++) {
        JitValue i = add(j, jit_index(&four), jit_i64(j, k));
        f->offset = add(j, c->kept_base, offset_of(j, r, i));
        v.way = k;
        fold_vector(j, v, f);
    }
    jit_end_for(j, &four);
    JitLoop one = jit_for(j, jit_index(&four), c->to, 1, "r");
    f->offset = add(j, c->kept_base, offset_of(j, r, jit_index(&one)));
    v.way = 0;
    fold_vector(j, v, f);
    jit_end_for(j, &one);
    store_lanes(j, c->out, c->result_base, v, finished(j, f->d, folded(j, f)));
}

static void start_result(Jit *j, Columns *c, JitValue kept)
{
    c->kept_base = offset_of(j, &c->f.d->kept, kept);
    c->result_base = mul(j, kept, jit_i64(j, c->f.d->inner));
}

enum { COLUMN_BLOCK = REDUCE_TASK_COLUMNS };

static int64_t column_blocks(const ReduceDesc *d)
{
    return divide_up(d->inner, COLUMN_BLOCK);
}

/* Task: a chunk of the reduced elements, all results. */
static void columns_chunked(Jit *j, Columns *c)
{
    const ReduceDesc *d = c->f.d;
    JitLoop chunk = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "chunk");
    JitValue next = jit_add(j, jit_index(&chunk), jit_i64(j, 1));
    c->from = part_start(j, jit_index(&chunk), d->reduced.count, d->chunks);
    c->to = part_start(j, next, d->reduced.count, d->chunks);
    c->out = target(j, d, jit_index(&chunk));
    JitLoop kept = jit_for(j, jit_i64(j, 0), jit_i64(j, d->kept.count), 1, "kept");
    start_result(j, c, jit_index(&kept));
    each_vector(j, d->inner, 1, column_vector, c);
    jit_end_for(j, &kept);
    jit_end_for(j, &chunk);
}

/* Task: a block of columns of one kept row. */
static void columns_whole(Jit *j, Columns *c)
{
    const ReduceDesc *d = c->f.d;
    JitValue blocks = jit_i64(j, column_blocks(d));
    JitLoop task = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "task");
    start_result(j, c, divide(j, jit_index(&task), blocks));
    JitValue from = mul(j, jit_mod(j, jit_index(&task), blocks), jit_i64(j, COLUMN_BLOCK));
    JitValue to = jit_add(j, from, jit_i64(j, COLUMN_BLOCK));
    c->from = jit_i64(j, 0);
    c->to = jit_i64(j, d->reduced.count);
    c->out = target(j, d, NULL);
    each_vector_between(j, from, jit_tmp(j, jit_min_i64(j, to, jit_i64(j, d->inner))), d->inner, 1,
                        column_vector, c);
    jit_end_for(j, &task);
}

/* --- last dim reduced --- */

static void store_result(Jit *j, Fold *f, JitValue out, JitValue kept)
{
    const JitTypes *t = jit_types(j);
    JitValue r = is_max(f->d) ? max_lane(j, folded(j, f)) : line_sum(j, &f->acc);
    if (f->d->scale != 1 && !f->d->chunks)
        r = jit_mul(j, r, jit_f32(j, f->d->scale));
    jit_store(j, out, kept, jit_cast(j, r, t->f32));
}

/* Elements [from, to) of the last dim for outer reduced elements [r0, r1); from NULL: the whole
 * dim. */
static void fold_rows(Jit *j, Fold *f, JitValue kept, JitValue r0, JitValue r1, JitValue from,
                      JitValue to)
{
    JitValue base = offset_of(j, &f->d->kept, kept);
    f->acc = line_accumulator(j, jit_vf(j, start_of(f->d)));
    JitLoop r = jit_for(j, r0, r1, 1, "r");
    f->offset = add(j, base, offset_of(j, &f->d->reduced, jit_index(&r)));
    if (from)
        each_line_vector_between(j, from, to, f->d->inner, fold_vector, f);
    else
        each_vector(j, f->d->inner, line_ways(j), fold_vector, f);
    jit_end_for(j, &r);
}

/* Chunks are ranges of the outer reduced elements where there are enough of them, else of vectors
 * of the last dim. */
static void rows_chunk(Jit *j, Fold *f, JitValue chunk, JitValue kept)
{
    const ReduceDesc *d = f->d;
    JitValue next = add(j, chunk, jit_i64(j, 1));
    if (d->reduced.count >= d->chunks) {
        fold_rows(j, f, kept, part_start(j, chunk, d->reduced.count, d->chunks),
                  part_start(j, next, d->reduced.count, d->chunks), NULL, NULL);
        return;
    }
    JitValue lanes = jit_i64(j, 16); /* of the widest vectors: the same chunks everywhere */
    int64_t units = divide_up(d->inner, 16);
    JitValue from = jit_mul(j, part_start(j, chunk, units, d->chunks), lanes);
    JitValue to = jit_mul(j, part_start(j, next, units, d->chunks), lanes);
    fold_rows(j, f, kept, jit_i64(j, 0), jit_i64(j, d->reduced.count), jit_tmp(j, from),
              jit_tmp(j, jit_min_i64(j, to, jit_i64(j, d->inner))));
}

static void rows_chunked(Jit *j, Fold *f)
{
    JitLoop chunk = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "chunk");
    JitValue out = target(j, f->d, jit_index(&chunk));
    JitLoop kept = jit_for(j, jit_i64(j, 0), jit_i64(j, f->d->kept.count), 1, "kept");
    rows_chunk(j, f, jit_index(&chunk), jit_index(&kept));
    store_result(j, f, out, jit_index(&kept));
    jit_end_for(j, &kept);
    jit_end_for(j, &chunk);
}

static int64_t row_items(const ReduceDesc *d)
{
    return items_per_task(d->reduced.count * d->inner);
}

static void rows_whole(Jit *j, Fold *f)
{
    const ReduceDesc *d = f->d;
    JitValue first, last;
    task_items(j, row_items(d), d->kept.count, &first, &last);
    JitLoop kept = jit_for(j, first, last, 1, "kept");
    fold_rows(j, f, jit_index(&kept), jit_i64(j, 0), jit_i64(j, d->reduced.count), NULL, NULL);
    store_result(j, f, target(j, d, NULL), jit_index(&kept));
    jit_end_for(j, &kept);
}

/* --- kernels --- */

static void emit_reduce(Jit *j, const void *desc)
{
    const ReduceDesc *d = desc;
    Columns c = {.f = {.d = d, .x = buf_f32(j, 0)}};
    if (d->inner_kept && d->chunks)
        columns_chunked(j, &c);
    else if (d->inner_kept)
        columns_whole(j, &c);
    else if (d->chunks)
        rows_chunked(j, &c.f);
    else
        rows_whole(j, &c.f);
}

static int64_t reduce_tasks(const ReduceDesc *d)
{
    if (d->chunks)
        return d->chunks;
    return d->inner_kept ? d->kept.count * column_blocks(d)
                         : divide_up(d->kept.count, row_items(d));
}

/* --- joining chunks --- */

KERNEL_DESC_BEGIN
/* Sizes and the scale are numbers of the call, so that reductions of all sizes share a kernel. */
typedef struct JoinDesc {
    int64_t max;  /* flag: the largest, not the sum */
    int64_t rest; /* flag: results do not end with a whole vector */
} JoinDesc;
KERNEL_DESC(JoinDesc)

enum { JOIN_CHUNKS = 2, JOIN_FLOATS, JOIN_COUNT, JOIN_SCALE, JOIN_BUFS, JOIN_RESULTS = 512 };

/* Partial result `chunk` of one vector of results. */
static JitValue partial_result(Jit *j, Lanes v, JitValue chunk)
{
    JitValue at = jit_mul(j, chunk, jit_number(j, JOIN_FLOATS));
    return load_lanes(j, buf_f32(j, 0), jit_tmp(j, at), v, 0);
}

static JitLoop each_chunk(Jit *j)
{
    return jit_for(j, jit_i64(j, 0), jit_tmp(j, jit_number(j, JOIN_CHUNKS)), 1, "chunk");
}

static JitValue joined_max(Jit *j, Lanes v)
{
    JitVar max = jit_var(j, jit_types(j)->vf, "max");
    jit_set(j, max, jit_vf(j, minus_inf));
    JitLoop chunk = each_chunk(j);
    jit_set(j, max, jit_vmax(j, partial_result(j, v, jit_index(&chunk)), jit_get(max)));
    jit_end_for(j, &chunk);
    return jit_get(max);
}

static JitValue joined_sum(Jit *j, Lanes v)
{
    CompensatedSum sum = compensated_sum(j);
    JitLoop chunk = each_chunk(j);
    compensated_add(j, &sum, partial_result(j, v, jit_index(&chunk)));
    jit_end_for(j, &chunk);
    return mul(j, compensated_total(j, &sum), point_number_lanes(j, DTYPE_F32, JOIN_SCALE));
}

/* Joins the partial results of one vector of results. */
static void join_vector(Jit *j, Lanes v, void *user)
{
    const JoinDesc *d = user;
    store_lanes(j, buf_f32(j, 1), NULL, v, d->max ? joined_max(j, v) : joined_sum(j, v));
}

static void emit_join(Jit *j, const void *desc)
{
    JoinDesc d = *(const JoinDesc *)desc;
    JitValue size = jit_i64(j, JOIN_RESULTS), first = mul(j, jit_task_begin(j), size);
    JitValue last = jit_min_i64(j, jit_mul(j, jit_task_end(j), size), jit_number(j, JOIN_COUNT));
    each_vector_between(j, first, jit_tmp(j, last), d.rest ? -1 : 0, 1, join_vector, &d);
}

/* Integers: one scalar loop; they are rare and small. */
static void emit_integers(Jit *j, const void *desc)
{
    const ReduceDesc *d = desc;
    const JitTypes *t = jit_types(j);
    bool bytes = d->dtype != DTYPE_I32;
    JitValue x = jit_buf(j, 0, bytes ? t->p_u8 : t->p_i32);
    JitValue out = jit_buf(j, 1, bytes ? t->p_u8 : t->p_i32);
    JitVar acc = jit_var(j, t->i32, "acc");
    JitLoop kept = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "kept");
    JitValue base = offset_of(j, &d->kept, jit_index(&kept));
    jit_set(j, acc, jit_i32(j, is_max(d) ? INT32_MIN : 0));
    JitLoop r = jit_for(j, jit_i64(j, 0), jit_i64(j, d->reduced.count), 1, "r");
    JitValue at = jit_add(j, base, offset_of(j, &d->reduced, jit_index(&r)));
    JitValue v = jit_tmp(j, jit_cast(j, jit_load(j, x, jit_tmp(j, at)), t->i32));
    if (is_max(d)) {
        JitIf larger = jit_if(j, jit_compare(j, JIT_GT, v, jit_get(acc)));
        jit_set(j, acc, v);
        jit_end_if(j, &larger);
    } else {
        jit_set(j, acc, jit_add(j, jit_get(acc), v));
    }
    jit_end_for(j, &r);
    jit_store(j, out, jit_index(&kept), jit_cast(j, jit_get(acc), bytes ? t->u8 : t->i32));
    jit_end_for(j, &kept);
}

/* --- calls --- */

static void lower_integers(Lowering *l, const Node *n, ReduceDesc *d)
{
    const CallBuf bufs[] = {{n->in[0], 0}, {n->out[0], 0}};
    reduce_add_digit(d->inner_kept ? &d->kept : &d->reduced, d->inner, 1);
    lower_pod_call(l, "reduce_int", emit_integers, d, DESC_BYTES(ReduceDesc), d->kept.count, bufs,
                   2);
}

void cpu_reduce(Lowering *l, const Node *n)
{
    ReduceDesc d = reduce_describe(l, n);
    if (d.dtype != DTYPE_F32) {
        lower_integers(l, n, &d);
        return;
    }
    CallBuf bufs[] = {{n->in[0], 0}, {d.chunks ? VALUE_NONE : n->out[0], 0}};
    lower_pod_call(l, op_name(n->op), emit_reduce, &d, DESC_BYTES(ReduceDesc), reduce_tasks(&d),
                   bufs, 2);
    if (!d.chunks)
        return;
    JoinDesc j = {is_max(&d), d.results % l->target->vector_floats != 0};
    const CallBuf join[JOIN_BUFS] = {{VALUE_NONE, 0},
                                     {n->out[0], 0},
                                     [JOIN_CHUNKS] = {CALL_NUMBER, d.chunks},
                                     [JOIN_FLOATS] = {CALL_NUMBER, d.partial_bytes / 4},
                                     [JOIN_COUNT] = {CALL_NUMBER, d.results},
                                     [JOIN_SCALE] = {CALL_NUMBER, point_word(DTYPE_F32, d.scale)}};
    lower_pod_join(l, "reduce_join", emit_join, &j, DESC_BYTES(JoinDesc),
                   divide_up(d.results, JOIN_RESULTS), join, JOIN_BUFS);
}
