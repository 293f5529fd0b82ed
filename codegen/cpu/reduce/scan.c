/* SPDX-License-Identifier: GPL-3.0-or-later */
/* codegen/forms/scan.h.  Lines that lie side by side are walked together. */
#include "codegen/forms/scan.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/cpu/rules.h"
#include "codegen/jit/jit_short.h"

/* The lines in hand. */
typedef struct Scan {
    const ScanDesc *d;
    JitType sum_type;    /* f64 or i64 */
    JitValue sum, count; /* of each line */
    LineBlock lines;
    JitValue column; /* i64; the line of a step */
} Scan;

typedef void ScanStep(Jit *j, Scan *s, JitValue k, JitValue at);

static JitValue buffer(Jit *j, const Scan *s, int i)
{
    return s->d->integer ? jit_buf(j, i, jit_types(j)->p_i32) : buf_f32(j, i);
}

static JitValue load(Jit *j, const Scan *s, int i, JitValue at)
{
    return jit_tmp(j, jit_cast(j, jit_load(j, buffer(j, s, i), at), s->sum_type));
}

static void store(Jit *j, const Scan *s, int i, JitValue at, JitValue v)
{
    JitType element = s->d->integer ? jit_types(j)->i32 : jit_types(j)->f32;
    jit_store(j, buffer(j, s, i), at, jit_cast(j, v, element));
}

static JitValue whole(Jit *j, const Scan *s, int v)
{
    return jit_tmp(j, jit_cast(j, jit_i64(j, v), s->sum_type));
}

static JitValue get(Jit *j, const Scan *s)
{
    return jit_load(j, s->sum, s->column);
}

static void set(Jit *j, const Scan *s, JitValue v)
{
    jit_store(j, s->sum, s->column, v);
}

/* step for element k of all lines in hand. */
static void across(Jit *j, Scan *s, JitValue k, ScanStep *step)
{
    const AxisShape *a = &s->d->shape;
    JitValue start = line_block_place(j, a, &s->lines, a->length, k);
    JitLoop c = jit_for(j, jit_i64(j, 0), s->lines.n, 1, "column");
    s->column = jit_index(&c);
    step(j, s, k, add(j, start, s->column));
    jit_end_for(j, &c);
}

static void along(Jit *j, Scan *s, bool reverse, ScanStep *step)
{
    JitLoop l = jit_for(j, jit_i64(j, 0), jit_i64(j, s->d->shape.length), 1, "k");
    JitValue k = jit_index(&l), last = jit_i64(j, s->d->shape.length - 1);
    across(j, s, reverse ? sub(j, last, k) : k, step);
    jit_end_for(j, &l);
}

/* --- what is done with an element --- */

static void start_at_zero(Jit *j, Scan *s, JitValue k, JitValue at)
{
    (void)k, (void)at;
    set(j, s, whole(j, s, 0));
}

static void start_at_one(Jit *j, Scan *s, JitValue k, JitValue at)
{
    (void)k, (void)at;
    set(j, s, whole(j, s, 1));
    jit_store(j, s->count, s->column, jit_i64(j, 0));
}

/* x, y */
static void cumulate(Jit *j, Scan *s, JitValue k, JitValue at)
{
    (void)k;
    JitValue before = get(j, s), x = load(j, s, 0, at);
    JitValue after = s->d->op == OP_cumsum ? add(j, before, x) : mul(j, before, x);
    store(j, s, 1, at, s->d->exclusive ? before : after);
    set(j, s, after);
}

/* dy, x, y: with S(i) = dy(i) + x(i+1) S(i+1), dx(i) = y(i-1) S(i); the state is x(i) S(i). */
static void cumprod_slope(Jit *j, Scan *s, JitValue k, JitValue at)
{
    JitVar before = jit_var(j, s->sum_type, "before");
    JitValue sum = add(j, load(j, s, 0, at), get(j, s));
    JitValue next = mul(j, load(j, s, 1, at), sum);
    jit_set(j, before, whole(j, s, 1));
    JitIf inside = jit_if(j, jit_compare(j, JIT_GT, k, jit_i64(j, 0)));
    jit_set(j, before, load(j, s, 2, sub(j, at, jit_i64(j, s->d->shape.inner))));
    jit_end_if(j, &inside);
    store(j, s, 3, at, mul(j, sum, jit_get(before)));
    set(j, s, next);
}

static void multiply(Jit *j, Scan *s, JitValue k, JitValue at)
{
    (void)k;
    set(j, s, jit_mul(j, get(j, s), load(j, s, 0, at)));
}

static JitValue line_place(Jit *j, const Scan *s)
{
    return add(j, line_block_place(j, &s->d->shape, &s->lines, 1, jit_i64(j, 0)), s->column);
}

static void store_product(Jit *j, Scan *s, JitValue k, JitValue at)
{
    (void)k, (void)at;
    store(j, s, 1, line_place(j, s), get(j, s));
}

/* dy, x: the product of what is not 0, and how many are. */
static void multiply_factors(Jit *j, Scan *s, JitValue k, JitValue at)
{
    (void)k;
    JitValue x = load(j, s, 1, at);
    JitIf zero = jit_if(j, jit_compare(j, JIT_EQ, x, whole(j, s, 0)));
    JitValue count = jit_load(j, s->count, s->column);
    jit_store(j, s->count, s->column, jit_add(j, count, jit_i64(j, 1)));
    jit_else(j, &zero);
    set(j, s, jit_mul(j, get(j, s), x));
    jit_end_if(j, &zero);
}

/* The state becomes dy times the product. */
static void take_gradient(Jit *j, Scan *s, JitValue k, JitValue at)
{
    (void)k, (void)at;
    set(j, s, jit_mul(j, load(j, s, 0, line_place(j, s)), get(j, s)));
}

/* The product of the others: without zeros the state over x, with one of them that zero has the
 * state and all others nothing, with several nobody has. */
static void product_slope(Jit *j, Scan *s, JitValue k, JitValue at)
{
    (void)k;
    JitVar slope = jit_var(j, s->sum_type, "slope");
    JitValue x = load(j, s, 1, at), zeros = jit_load(j, s->count, s->column), zero = whole(j, s, 0);
    JitIf none = jit_if(j, jit_compare(j, JIT_EQ, zeros, jit_i64(j, 0)));
    jit_set(j, slope, jit_div(j, get(j, s), x));
    jit_else(j, &none);
    JitValue own =
        jit_and(j, jit_compare(j, JIT_EQ, zeros, jit_i64(j, 1)), jit_compare(j, JIT_EQ, x, zero));
    jit_set(j, slope, zero);
    JitIf only = jit_if(j, own);
    jit_set(j, slope, get(j, s));
    jit_end_if(j, &only);
    jit_end_if(j, &none);
    store(j, s, 2, at, jit_get(slope));
}

/* --- the kernel --- */

static void emit_lines(Jit *j, Scan *s)
{
    const ScanDesc *d = s->d;
    JitValue zero = jit_i64(j, 0);
    bool sums = d->op == OP_cumsum || d->op == OP_cumprod_grad;
    across(j, s, zero, sums ? start_at_zero : start_at_one);
    if (d->op == OP_cumsum || d->op == OP_cumprod) {
        along(j, s, d->reverse, cumulate);
    } else if (d->op == OP_cumprod_grad) {
        along(j, s, true, cumprod_slope);
    } else if (d->op == OP_prod) {
        along(j, s, false, multiply);
        across(j, s, zero, store_product);
    } else {
        along(j, s, false, multiply_factors);
        across(j, s, zero, take_gradient);
        along(j, s, false, product_slope);
    }
}

static int64_t scan_items(const ScanDesc *d)
{
    return items_per_task(d->shape.length * line_block_most(&d->shape));
}

static void emit_scan(Jit *j, const void *desc)
{
    const ScanDesc *d = desc;
    const JitTypes *t = jit_types(j);
    Scan s = {.d = d, .sum_type = d->integer ? t->i64 : t->f64};
    int n = (int)line_block_most(&d->shape);
    s.sum = jit_tmp(
        j, jit_array_ptr(j, jit_array_var(j, s.sum_type, n, "sum"), jit_pointer_to(j, s.sum_type)));
    s.count = jit_tmp(j, jit_array_ptr(j, jit_array_var(j, t->i64, n, "count"), t->p_i64));
    JitValue first, last;
    task_items(j, scan_items(d), line_blocks(&d->shape), &first, &last);
    JitLoop item = jit_for(j, first, last, 1, "item");
    s.lines = line_block(j, &d->shape, jit_index(&item));
    emit_lines(j, &s);
    jit_end_for(j, &item);
}

void cpu_scan(Lowering *l, const Node *n)
{
    ScanDesc d = scan_describe(l, n);
    CallBuf bufs[CALL_MAX_BUFS];
    int n_bufs = node_bufs(n, bufs);
    lower_pod_call(l, op_name(n->op), emit_scan, &d, DESC_BYTES(ScanDesc),
                   divide_up(line_blocks(&d.shape), scan_items(&d)), bufs, n_bufs);
}
