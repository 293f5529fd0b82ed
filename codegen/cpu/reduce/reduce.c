/* SPDX-License-Identifier: GPL-3.0-or-later */
/* sum, mean, reduce_max and sumsq over any axes.
 *
 * Neighbouring axes of one kind are merged.  When the last axis is kept, vectors lie across results
 * and walk the reduced elements; when it is reduced, vectors lie along it and are folded at the
 * end.  Sizes are numbers of the call where that takes no division for each element, and no row is
 * so short that its loops would cost: so reductions of all sizes share a kernel.  A chunked
 * reduction (ir/workspace.h) computes partial results in the workspace, which a second call joins
 * in order. */
#include "codegen/cpu/point/point_jit.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/cpu/reduce/reduce_join.h"
#include "codegen/cpu/rules.h"
#include "codegen/forms/point.h"
#include "codegen/forms/reduction.h"
#include "codegen/jit/jit_short.h"
#include "ir/support/bug.h"
#include "ir/workspace.h"

#include <math.h>

static const double minus_inf = -(double)INFINITY;

KERNEL_DESC_BEGIN
/* What the code depends on where sizes are numbers of the call. */
typedef struct SharedDesc {
    int64_t op;
    int64_t inner_kept, kept, reduced; /* flags: the last dim is, there are other dims that are */
    int64_t chunked, scaled;           /* flags */
    int64_t rest;                      /* flag: vectors of results do not end with a whole one */
} SharedDesc;
KERNEL_DESC(SharedDesc)

typedef enum ReduceNumber {
    KEPT,
    KEPT_STEP, /* from one to the next in the input */
    REDUCED,
    REDUCED_STEP,
    INNER,
    BLOCKS, /* of columns */
    CHUNKS,
    PARTIAL, /* floats of a chunk's results */
    SCALE,
    REDUCE_NUMBERS
} ReduceNumber;
enum { FIRST_NUMBER = 2, COLUMN_BLOCK = REDUCE_TASK_COLUMNS };

/* d: sizes are constants; else shared: numbers. */
typedef struct Fold {
    const ReduceDesc *d;
    SharedDesc form;
    JitValue size[REDUCE_NUMBERS]; /* but for SCALE */
    JitValue x, offset;
    Accumulator acc;
} Fold;

static int64_t column_blocks(const ReduceDesc *d)
{
    return divide_up(d->inner, COLUMN_BLOCK);
}

static SharedDesc form_of(const ReduceDesc *d, int lanes)
{
    return (SharedDesc){d->op,
                        d->inner_kept,
                        d->kept.n > 0,
                        d->reduced.n > 0,
                        d->chunks > 0,
                        d->scale != 1 && !d->chunks,
                        d->inner_kept && d->inner % lanes != 0};
}

static void numbers_of(const ReduceDesc *d, int64_t *number)
{
    number[KEPT] = d->kept.count;
    number[KEPT_STEP] = d->kept.stride[0];
    number[REDUCED] = d->reduced.count;
    number[REDUCED_STEP] = d->reduced.stride[0];
    number[INNER] = d->inner;
    number[BLOCKS] = column_blocks(d);
    number[CHUNKS] = d->chunks;
    number[PARTIAL] = d->partial_bytes / 4;
    number[SCALE] = point_word(DTYPE_F32, d->scale);
}

static Fold fold_of(Jit *j, const ReduceDesc *d, SharedDesc form)
{
    Fold f = {.d = d, .form = form, .x = buf_f32(j, 0)};
    int64_t constant[REDUCE_NUMBERS];
    if (d)
        numbers_of(d, constant);
    for (int i = 0; i < SCALE; i++)
        f.size[i] = d ? jit_i64(j, constant[i]) : jit_number(j, FIRST_NUMBER + i);
    return f;
}

static bool is_max(const Fold *f)
{
    return f->form.op == OP_reduce_max;
}

static double start_of(const Fold *f)
{
    return is_max(f) ? minus_inf : 0;
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

static JitValue step_of(Jit *j, int64_t any, JitValue i, JitValue step)
{
    return any ? mul(j, i, step) : jit_i64(j, 0);
}

/* Of result i, and of reduced element i of it, but for the last dim. */
static JitValue kept_offset(Jit *j, const Fold *f, JitValue i)
{
    return f->d ? offset_of(j, &f->d->kept, i) : step_of(j, f->form.kept, i, f->size[KEPT_STEP]);
}

static JitValue reduced_offset(Jit *j, const Fold *f, JitValue i)
{
    return f->d ? offset_of(j, &f->d->reduced, i)
                : step_of(j, f->form.reduced, i, f->size[REDUCED_STEP]);
}

/* --- one term --- */

static void fold_vector(Jit *j, Lanes v, void *user)
{
    Fold *f = user;
    JitValue x = load_lanes(j, f->x, f->offset, v, start_of(f));
    JitVar acc = f->acc.var[v.way % f->acc.n];
    if (f->form.op == OP_sumsq)
        x = mul(j, x, x);
    jit_set(j, acc, is_max(f) ? jit_vmax(j, x, jit_get(acc)) : jit_add(j, jit_get(acc), x));
}

static JitValue folded(Jit *j, Fold *f)
{
    JitValue v = jit_get(f->acc.var[0]);
    if (!is_max(f))
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
static JitValue target(Jit *j, const Fold *f, JitValue chunk)
{
    if (!f->form.chunked)
        return buf_f32(j, 1);
    return jit_tmp(j, jit_offset(j, buf_f32(j, 1), jit_mul(j, chunk, f->size[PARTIAL])));
}

static JitValue scale_lanes(Jit *j, const Fold *f)
{
    return f->d ? jit_vf(j, f->d->scale) : point_number_lanes(j, DTYPE_F32, FIRST_NUMBER + SCALE);
}

static JitValue finished(Jit *j, const Fold *f, JitValue v)
{
    return f->form.scaled ? mul(j, v, scale_lanes(j, f)) : v;
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
    f->acc = accumulator(j, ROWS, jit_vf(j, start_of(f)));
    JitLoop four = jit_for(j, c->from, jit_sub(j, c->to, jit_i64(j, ROWS - 1)), ROWS, "r");
    for (int k = 0; k < ROWS; k++) {
        JitValue i = add(j, jit_index(&four), jit_i64(j, k));
        f->offset = add(j, c->kept_base, reduced_offset(j, f, i));
        v.way = k;
        fold_vector(j, v, f);
    }
    jit_end_for(j, &four);
    JitLoop one = jit_for(j, jit_index(&four), c->to, 1, "r");
    f->offset = add(j, c->kept_base, reduced_offset(j, f, jit_index(&one)));
    v.way = 0;
    fold_vector(j, v, f);
    jit_end_for(j, &one);
    store_lanes(j, c->out, c->result_base, v, finished(j, f, folded(j, f)));
}

static void start_result(Jit *j, Columns *c, JitValue kept)
{
    c->kept_base = kept_offset(j, &c->f, kept);
    c->result_base = mul(j, kept, c->f.size[INNER]);
}

static void all_columns(Jit *j, Columns *c)
{
    const Fold *f = &c->f;
    if (f->d)
        each_vector(j, f->d->inner, 1, column_vector, c);
    else
        each_vector_between(j, jit_i64(j, 0), f->size[INNER], f->form.rest ? -1 : 0, 1,
                            column_vector, c);
}

/* Task: a chunk of the reduced elements, all results. */
static void columns_chunked(Jit *j, Columns *c)
{
    const JitValue *size = c->f.size;
    JitLoop chunk = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "chunk");
    JitValue next = jit_add(j, jit_index(&chunk), jit_i64(j, 1));
    c->from = part_start_of(j, jit_index(&chunk), size[REDUCED], size[CHUNKS]);
    c->to = part_start_of(j, next, size[REDUCED], size[CHUNKS]);
    c->out = target(j, &c->f, jit_index(&chunk));
    JitLoop kept = jit_for(j, jit_i64(j, 0), size[KEPT], 1, "kept");
    start_result(j, c, jit_index(&kept));
    all_columns(j, c);
    jit_end_for(j, &kept);
    jit_end_for(j, &chunk);
}

/* Task: a block of columns of one kept row. */
static void columns_whole(Jit *j, Columns *c)
{
    const JitValue *size = c->f.size;
    JitLoop task = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "task");
    start_result(j, c, divide(j, jit_index(&task), size[BLOCKS]));
    JitValue from = mul(j, jit_mod(j, jit_index(&task), size[BLOCKS]), jit_i64(j, COLUMN_BLOCK));
    JitValue to = jit_add(j, from, jit_i64(j, COLUMN_BLOCK));
    c->from = jit_i64(j, 0);
    c->to = size[REDUCED];
    c->out = target(j, &c->f, NULL);
    each_vector_between(j, from, jit_tmp(j, jit_min_i64(j, to, size[INNER])),
                        c->f.form.rest ? -1 : 0, 1, column_vector, c);
    jit_end_for(j, &task);
}

/* --- last dim reduced --- */

static JitValue scale_number(Jit *j, const Fold *f)
{
    if (f->d)
        return jit_f32(j, f->d->scale);
    JitValue words = jit_cast(j, jit_bufs(j), jit_types(j)->p_f32); /* two of a number */
    return jit_load(j, words, jit_i64(j, (int64_t)2 * (FIRST_NUMBER + SCALE)));
}

static void store_result(Jit *j, Fold *f, JitValue out, JitValue kept)
{
    const JitTypes *t = jit_types(j);
    JitValue r = is_max(f) ? max_lane(j, folded(j, f)) : line_sum(j, &f->acc);
    if (f->form.scaled)
        r = jit_mul(j, r, scale_number(j, f));
    jit_store(j, out, kept, jit_cast(j, r, t->f32));
}

/* Elements [from, to) of the last dim for outer reduced elements [r0, r1); from NULL: the whole
 * dim. */
static void fold_rows(Jit *j, Fold *f, JitValue kept, JitValue r0, JitValue r1, JitValue from,
                      JitValue to)
{
    JitValue base = kept_offset(j, f, kept);
    f->acc = line_accumulator(j, jit_vf(j, start_of(f)));
    JitLoop r = jit_for(j, r0, r1, 1, "r");
    f->offset = add(j, base, reduced_offset(j, f, jit_index(&r)));
    if (from)
        each_line_vector_between(j, from, to, f->d ? f->d->inner : -1, fold_vector, f);
    else if (f->d)
        each_vector(j, f->d->inner, line_ways(j), fold_vector, f);
    else
        each_line_vector(j, f->size[INNER], fold_vector, f);
    jit_end_for(j, &r);
}

/* Chunks are ranges of the outer reduced elements where there are enough of them, else of vectors
 * of the last dim. */
static void rows_chunk(Jit *j, Fold *f, JitValue chunk, JitValue kept)
{
    enum { UNIT = 16 }; /* lanes of the widest vectors: the same chunks everywhere */
    JitValue next = add(j, chunk, jit_i64(j, 1)), *size = f->size;
    if (f->d && f->d->reduced.count >= f->d->chunks) {
        fold_rows(j, f, kept, part_start_of(j, chunk, size[REDUCED], size[CHUNKS]),
                  part_start_of(j, next, size[REDUCED], size[CHUNKS]), NULL, NULL);
        return;
    }
    JitValue lanes = jit_i64(j, UNIT);
    JitValue units = divide(j, add(j, size[INNER], jit_i64(j, UNIT - 1)), lanes);
    JitValue from = jit_mul(j, part_start_of(j, chunk, units, size[CHUNKS]), lanes);
    JitValue to = jit_mul(j, part_start_of(j, next, units, size[CHUNKS]), lanes);
    fold_rows(j, f, kept, jit_i64(j, 0), size[REDUCED], jit_tmp(j, from),
              jit_tmp(j, jit_min_i64(j, to, size[INNER])));
}

static void rows_chunked(Jit *j, Fold *f)
{
    JitLoop chunk = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "chunk");
    JitValue out = target(j, f, jit_index(&chunk));
    JitLoop kept = jit_for(j, jit_i64(j, 0), f->size[KEPT], 1, "kept");
    rows_chunk(j, f, jit_index(&chunk), jit_index(&kept));
    store_result(j, f, out, jit_index(&kept));
    jit_end_for(j, &kept);
    jit_end_for(j, &chunk);
}

static int64_t row_items(const ReduceDesc *d)
{
    return items_per_task(d->reduced.count * d->inner);
}

/* Results [first, last). */
static void rows_between(Jit *j, Fold *f, JitValue first, JitValue last)
{
    JitLoop kept = jit_for(j, first, last, 1, "kept");
    fold_rows(j, f, jit_index(&kept), jit_i64(j, 0), f->size[REDUCED], NULL, NULL);
    store_result(j, f, target(j, f, NULL), jit_index(&kept));
    jit_end_for(j, &kept);
}

static void rows_whole(Jit *j, Fold *f)
{
    JitValue first = jit_task_begin(j), last = jit_task_end(j); /* shared: there is one result */
    if (f->d)
        task_items(j, row_items(f->d), f->d->kept.count, &first, &last);
    rows_between(j, f, first, last);
}

/* --- kernels --- */

static void emit_form(Jit *j, Fold f)
{
    Columns c = {.f = f};
    if (f.form.inner_kept && f.form.chunked)
        columns_chunked(j, &c);
    else if (f.form.inner_kept)
        columns_whole(j, &c);
    else if (f.form.chunked)
        rows_chunked(j, &c.f);
    else
        rows_whole(j, &c.f);
}

static void emit_reduce(Jit *j, const void *desc)
{
    emit_form(j, fold_of(j, desc, form_of(desc, jit_lanes(j))));
}

static void emit_shared(Jit *j, const void *desc)
{
    emit_form(j, fold_of(j, NULL, *(const SharedDesc *)desc));
}

/* Whether sizes may be numbers: neither digits of more than one dim nor many rows. */
static bool is_shared(const ReduceDesc *d)
{
    bool one_row = d->kept.n == 0 && (!d->chunks || d->reduced.count < d->chunks);
    return d->kept.n <= 1 && d->reduced.n <= 1 && (d->inner_kept || one_row);
}

static int64_t reduce_tasks(const ReduceDesc *d)
{
    if (d->chunks)
        return d->chunks;
    return d->inner_kept ? d->kept.count * column_blocks(d)
                         : divide_up(d->kept.count, row_items(d));
}

/* --- integers --- */

/* One scalar loop; they are rare and small. */
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
    jit_set(j, acc, jit_i32(j, d->op == OP_reduce_max ? INT32_MIN : 0));
    JitLoop r = jit_for(j, jit_i64(j, 0), jit_i64(j, d->reduced.count), 1, "r");
    JitValue at = jit_add(j, base, offset_of(j, &d->reduced, jit_index(&r)));
    JitValue v = jit_tmp(j, jit_cast(j, jit_load(j, x, jit_tmp(j, at)), t->i32));
    if (d->op == OP_reduce_max) {
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

static void lower_reduce(Lowering *l, const Node *n, const ReduceDesc *d)
{
    CallBuf bufs[FIRST_NUMBER + REDUCE_NUMBERS] = {{n->in[0], 0},
                                                   {d->chunks ? VALUE_NONE : n->out[0], 0}};
    if (!is_shared(d)) {
        lower_pod_call(l, op_name(n->op), emit_reduce, d, DESC_BYTES(ReduceDesc), reduce_tasks(d),
                       bufs, FIRST_NUMBER);
        return;
    }
    int64_t number[REDUCE_NUMBERS];
    SharedDesc form = form_of(d, l->target->vector_floats);
    numbers_of(d, number);
    for (int i = 0; i < REDUCE_NUMBERS; i++)
        bufs[FIRST_NUMBER + i] = (CallBuf){CALL_NUMBER, number[i]};
    lower_pod_call(l, op_name(n->op), emit_shared, &form, DESC_BYTES(SharedDesc), reduce_tasks(d),
                   bufs, FIRST_NUMBER + REDUCE_NUMBERS);
}

void cpu_reduce(Lowering *l, const Node *n)
{
    ReduceDesc d = reduce_describe(l, n);
    if (d.dtype != DTYPE_F32) {
        lower_integers(l, n, &d);
        return;
    }
    lower_reduce(l, n, &d);
    if (d.chunks)
        reduce_join_call(l, n, &d);
}
