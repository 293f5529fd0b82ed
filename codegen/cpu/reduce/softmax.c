/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Softmax, log-softmax and their gradients.
 *
 * Along the last axis a row is walked three times; short rows stay in registers, long ones are read
 * again from cache.  Along other axes vectors lie across the lines.  Every pass reads an element
 * before the same place of the output is written, so that the output may lie on an input. */
#include "codegen/forms/softmax.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/cpu/rules.h"
#include "codegen/jit/jit_short.h"

#include <math.h>

/* One row or, across lines, one vector of lines. */
typedef struct Row {
    const SoftmaxDesc *d;
    JitValue x, y, out; /* x: input, or dy; y: forward result in gradients */
    JitValue offset;
    bool held;
    JitValue a[MAX_WAYS + 1], b[MAX_WAYS + 1];
    Accumulator acc;
    JitValue max, sum, log_sum; /* vectors */
} Row;

static const double minus_inf = -(double)INFINITY;

/* --- along the last axis --- */

static void max_pass(Jit *j, Lanes v, void *user)
{
    Row *r = user;
    JitValue x = load_lanes(j, r->x, r->offset, v, minus_inf);
    if (r->held)
        r->a[v.way] = x;
    accumulate_max(j, &r->acc, v, x);
}

/* e^(x - max): lanes past the end are e^-inf = 0. */
static JitValue shifted_exp(Jit *j, Row *r, Lanes v)
{
    JitValue x = r->held ? r->a[v.way] : load_lanes(j, r->x, r->offset, v, minus_inf);
    return jit_vexp_below(j, jit_sub(j, x, r->max));
}

/* Exponentials that do not stay in registers wait in the result, but for bf16, which would round
 * them: they are made twice. */
static bool again(const Jit *j, const Row *r)
{
    return !r->held && jit_type_of(r->out) == jit_types(j)->p_bf16;
}

static void exp_pass(Jit *j, Lanes v, void *user)
{
    Row *r = user;
    JitValue e = jit_tmp(j, shifted_exp(j, r, v));
    accumulate(j, &r->acc, v, e);
    if (r->d->log || again(j, r))
        return;
    if (r->held)
        r->a[v.way] = e;
    else
        store_lanes(j, r->out, r->offset, v, e);
}

static void scale_pass(Jit *j, Lanes v, void *user)
{
    Row *r = user;
    JitValue e = r->held       ? r->a[v.way]
                 : again(j, r) ? jit_tmp(j, shifted_exp(j, r, v))
                               : load_lanes(j, r->out, r->offset, v, 0);
    store_lanes(j, r->out, r->offset, v, mul(j, e, r->sum));
}

static void log_pass(Jit *j, Lanes v, void *user)
{
    Row *r = user;
    JitValue x = r->held ? r->a[v.way] : load_lanes(j, r->x, r->offset, v, 0);
    JitValue y = jit_sub(j, jit_sub(j, x, r->max), r->log_sum);
    store_lanes(j, r->out, r->offset, v, jit_tmp(j, y));
}

static int pass_ways(const Jit *j, const Row *r)
{
    return r->held ? MAX_WAYS : line_ways(j);
}

static void forward_row(Jit *j, Row *r)
{
    int64_t n = r->d->length;
    r->acc = line_accumulator(j, jit_vf(j, minus_inf));
    each_vector(j, n, pass_ways(j, r), max_pass, r);
    r->max = splat(j, jit_hmax(j, accumulated_max(j, &r->acc)));
    r->acc = line_accumulator(j, jit_vf(j, 0));
    each_vector(j, n, pass_ways(j, r), exp_pass, r);
    r->sum = splat(j, line_sum(j, &r->acc));
    if (r->d->log)
        r->log_sum = jit_tmp(j, jit_vlog(j, r->sum));
    else
        r->sum = divide(j, jit_vf(j, 1), r->sum);
    each_vector(j, n, pass_ways(j, r), r->d->log ? log_pass : scale_pass, r);
}

static void load_pair(Jit *j, Row *r, Lanes v, JitValue *dy, JitValue *y)
{
    *dy = load_lanes(j, r->x, r->offset, v, 0);
    *y = load_lanes(j, r->y, r->offset, v, 0);
}

/* sum of dy * y, or of dy */
static void dot_pass(Jit *j, Lanes v, void *user)
{
    Row *r = user;
    JitValue dy, y;
    load_pair(j, r, v, &dy, &y);
    if (r->held) {
        r->a[v.way] = dy;
        r->b[v.way] = y;
    }
    accumulate(j, &r->acc, v, r->d->log ? dy : mul(j, dy, y));
}

static JitValue grad_element(Jit *j, const Row *r, JitValue dy, JitValue y)
{
    if (r->d->log)
        return sub(j, dy, mul(j, jit_vexp_below(j, y), r->sum));
    return mul(j, y, sub(j, dy, r->sum));
}

static void grad_pass(Jit *j, Lanes v, void *user)
{
    Row *r = user;
    JitValue dy = r->a[v.way], y = r->b[v.way];
    if (!r->held)
        load_pair(j, r, v, &dy, &y);
    store_lanes(j, r->out, r->offset, v, grad_element(j, r, dy, y));
}

static void grad_row(Jit *j, Row *r)
{
    r->acc = line_accumulator(j, jit_vf(j, 0));
    each_vector(j, r->d->length, pass_ways(j, r), dot_pass, r);
    r->sum = splat(j, line_sum(j, &r->acc));
    each_vector(j, r->d->length, pass_ways(j, r), grad_pass, r);
}

/* --- across lines --- */

typedef void LineStep(Jit *j, Row *r, Lanes v);

/* step for every element of the lines under vector v. */
static void each_step(Jit *j, Row *r, Lanes v, LineStep *step)
{
    JitValue start = r->offset;
    JitLoop k = jit_for(j, jit_i64(j, 0), jit_i64(j, r->d->length), 1, "k");
    r->offset = jit_tmp(j, jit_muladd_i64(j, jit_index(&k), r->d->inner, start));
    step(j, r, v);
    jit_end_for(j, &k);
    r->offset = start;
}

static void line_max(Jit *j, Row *r, Lanes v)
{
    accumulate_max(j, &r->acc, v, load_lanes(j, r->x, r->offset, v, 0));
}

static void line_exp(Jit *j, Row *r, Lanes v)
{
    exp_pass(j, v, r);
}

static void line_scale(Jit *j, Row *r, Lanes v)
{
    scale_pass(j, v, r);
}

static void line_log(Jit *j, Row *r, Lanes v)
{
    log_pass(j, v, r);
}

static void line_dot(Jit *j, Row *r, Lanes v)
{
    dot_pass(j, v, r);
}

static void line_grad(Jit *j, Row *r, Lanes v)
{
    grad_pass(j, v, r);
}

static void forward_lines(Jit *j, Row *r, Lanes v)
{
    r->acc = accumulator(j, 1, jit_vf(j, minus_inf));
    each_step(j, r, v, line_max);
    r->max = jit_tmp(j, accumulated_max(j, &r->acc));
    r->acc = accumulator(j, 1, jit_vf(j, 0));
    each_step(j, r, v, line_exp);
    r->sum = jit_tmp(j, accumulated(j, &r->acc));
    if (r->d->log)
        r->log_sum = jit_tmp(j, jit_vlog(j, r->sum));
    else
        r->sum = divide(j, jit_vf(j, 1), r->sum);
    each_step(j, r, v, r->d->log ? line_log : line_scale);
}

static void lines(Jit *j, Lanes v, void *user)
{
    Row *r = user;
    if (!r->d->grad) {
        forward_lines(j, r, v);
        return;
    }
    r->acc = accumulator(j, 1, jit_vf(j, 0));
    each_step(j, r, v, line_dot);
    r->sum = jit_tmp(j, accumulated(j, &r->acc));
    each_step(j, r, v, line_grad);
}

/* --- the kernel --- */

static int64_t softmax_items(const SoftmaxDesc *d)
{
    return items_per_task(d->length * d->inner);
}

static void emit_softmax(Jit *j, const void *desc)
{
    const SoftmaxDesc *d = desc;
    Row r = {.d = d, .x = buf_f32(j, 0), .y = d->grad ? buf_f32(j, 1) : NULL};
    JitValue first, last;
    r.out = buf_f32(j, d->grad ? 2 : 1);
    r.held =
        d->inner == 1 && divide_up(d->length, jit_lanes(j)) * (d->grad ? 2 : 1) <= row_registers(j);
    task_items(j, softmax_items(d), d->outer, &first, &last);
    JitLoop rows = jit_for(j, first, last, 1, "row");
    r.offset = mul(j, jit_index(&rows), jit_i64(j, d->length * d->inner));
    if (d->inner > 1)
        each_vector(j, d->inner, 1, lines, &r);
    else if (d->grad)
        grad_row(j, &r);
    else
        forward_row(j, &r);
    jit_end_for(j, &rows);
}

void cpu_softmax(Lowering *l, const Node *n)
{
    SoftmaxDesc d = softmax_describe(l, n);
    CallBuf bufs[CALL_MAX_BUFS];
    int n_bufs = node_bufs(n, bufs);
    int64_t tasks = d.length && d.inner ? divide_up(d.outer, softmax_items(&d)) : 0;
    lower_pod_call(l, op_name(n->op), emit_softmax, &d, DESC_BYTES(SoftmaxDesc), tasks, bufs,
                   n_bufs);
}
