/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/reduce/loss_lines.h"
#include "codegen/jit/jit_short.h"

#include <math.h>

static const double minus_inf = -(double)INFINITY;

/* --- class weights --- */

JitValue loss_class_weight(Jit *j, const LossLine *l, JitValue k)
{
    return jit_load(j, l->weight, k);
}

JitValue loss_class_weights(Jit *j, const LossLine *l, Lanes v)
{
    return l->d->inner == 1 ? load_lanes(j, l->weight, NULL, v, 0) : l->class_weight;
}

void loss_use_weights(Jit *j, LossLine *l, int buf)
{
    if (!l->d->weighted)
        return;
    l->weight = buf_f32(j, buf);
    if (l->d->smoothing == 0)
        return;
    const JitTypes *t = jit_types(j);
    JitVar sum = jit_var(j, t->f64, "weights");
    jit_set(j, sum, jit_zero(j, t->f64));
    JitLoop k = jit_for(j, jit_i64(j, 0), jit_i64(j, l->d->classes), 1, "k");
    JitValue w = jit_cast(j, loss_class_weight(j, l, jit_index(&k)), t->f64);
    jit_set(j, sum, jit_add(j, jit_get(sum), w));
    jit_end_for(j, &k);
    l->all_weights = splat(j, jit_cast(j, jit_get(sum), t->f32));
}

/* --- a line along the classes --- */

static void max_pass(Jit *j, Lanes v, void *user)
{
    LossLine *l = user;
    accumulate_max(j, &l->acc, v, load_lanes(j, l->x, l->offset, v, minus_inf));
}

JitValue loss_shifted_exp(Jit *j, const LossLine *l, Lanes v, JitValue *x)
{
    *x = load_lanes(j, l->x, l->offset, v, minus_inf);
    return jit_vexp_below(j, jit_sub(j, *x, l->max));
}

static void exp_pass(Jit *j, Lanes v, void *user)
{
    LossLine *l = user;
    JitValue x;
    accumulate(j, &l->acc, v, loss_shifted_exp(j, l, v, &x));
    if (l->d->smoothing == 0 || l->out)
        return;
    JitValue d = valid_lanes(j, v, sub(j, x, l->max), 0);
    accumulate(j, &l->all, v, l->weight ? mul(j, d, loss_class_weights(j, l, v)) : d);
}

void loss_scan_line(Jit *j, LossLine *l)
{
    int64_t n = l->d->classes;
    l->acc = line_accumulator(j, jit_vf(j, minus_inf));
    each_vector(j, n, line_ways(j), max_pass, l);
    l->max = splat(j, jit_hmax(j, accumulated_max(j, &l->acc)));
    l->acc = line_accumulator(j, jit_vf(j, 0));
    l->all = line_accumulator(j, jit_vf(j, 0));
    each_vector(j, n, line_ways(j), exp_pass, l);
    l->sum = splat(j, line_sum(j, &l->acc));
}

/* --- across lines --- */

/* Labels of the lines under a vector, as vi; lanes past the end are -1. */
static JitValue load_labels(Jit *j, const LossDesc *d, JitValue first, Lanes v)
{
    const JitTypes *t = jit_types(j);
    JitVar lanes = jit_array_var(j, t->i32, jit_lanes(j), "labels");
    JitValue p = jit_array_ptr(j, lanes, t->p_i32);
    jit_vstore_aligned(j, p, jit_i64(j, 0), jit_tmp(j, jit_vi(j, -1)));
    JitLoop l = jit_for(j, jit_i64(j, 0), v.n ? v.n : jit_i64(j, jit_lanes(j)), 1, "lane");
    JitValue label = loss_label(j, d, add(j, first, jit_index(&l)));
    jit_store(j, p, jit_index(&l), jit_cast(j, label, t->i32));
    jit_end_for(j, &l);
    return jit_vload_aligned(j, p, jit_i64(j, 0));
}

void loss_each_class(Jit *j, LossLine *l, Lanes v, LossLineStep *step)
{
    JitValue start = l->offset;
    JitLoop k = jit_for(j, jit_i64(j, 0), jit_i64(j, l->d->classes), 1, "k");
    l->offset = jit_tmp(j, jit_muladd_i64(j, jit_index(&k), l->d->inner, start));
    l->k = splat(j, jit_cast(j, jit_index(&k), jit_types(j)->i32));
    if (l->weight)
        l->class_weight = splat(j, loss_class_weight(j, l, jit_index(&k)));
    step(j, l, v);
    jit_end_for(j, &k);
    l->offset = start;
}

static void class_max(Jit *j, LossLine *l, Lanes v)
{
    max_pass(j, v, l);
}

JitValue loss_is_label(Jit *j, const LossLine *l)
{
    return jit_vmask(j, JIT_EQ, l->k, l->label);
}

static void class_exp(Jit *j, LossLine *l, Lanes v)
{
    JitValue x, e = loss_shifted_exp(j, l, v, &x);
    accumulate(j, &l->acc, v, e);
    JitValue d = sub(j, x, l->max);
    if (l->d->smoothing > 0 && !l->out)
        accumulate(j, &l->all, v, l->weight ? mul(j, d, l->class_weight) : d);
    if (l->weight)
        jit_set(j, l->picked_weight,
                jit_vselect(j, loss_is_label(j, l), l->class_weight, jit_get(l->picked_weight)));
    jit_set(j, l->picked, jit_vselect(j, loss_is_label(j, l), d, jit_get(l->picked)));
}

void loss_scan_lines(Jit *j, LossLine *l, Lanes v, JitValue outer)
{
    JitValue first = jit_muladd_i64(j, outer, l->d->inner, v.at);
    l->label = load_labels(j, l->d, jit_tmp(j, first), v);
    l->offset = mul(j, outer, jit_i64(j, l->d->classes * l->d->inner));
    l->acc = accumulator(j, 1, jit_vf(j, minus_inf));
    loss_each_class(j, l, v, class_max);
    l->max = jit_tmp(j, accumulated_max(j, &l->acc));
    l->acc = accumulator(j, 1, jit_vf(j, 0));
    l->all = accumulator(j, 1, jit_vf(j, 0));
    l->picked = jit_var(j, jit_types(j)->vf, "picked");
    jit_set(j, l->picked, jit_vf(j, 0));
    l->picked_weight = jit_var(j, jit_types(j)->vf, "weight");
    jit_set(j, l->picked_weight, jit_vf(j, 0));
    loss_each_class(j, l, v, class_exp);
    l->sum = jit_tmp(j, accumulated(j, &l->acc));
    l->label_weight = jit_get(l->picked_weight);
}

JitValue loss_valid_labels(Jit *j, const LossLine *l)
{
    return jit_vmask(j, JIT_GE, l->label, jit_vi(j, 0));
}

JitValue loss_first_line(Jit *j, const LossLines *a)
{
    return mul(j, a->outer, jit_i64(j, a->l.d->inner));
}

void loss_each_line(Jit *j, LossLines *a, JitValue first, JitValue last, LossLineCode *line,
                    LossLineCode *lines)
{
    JitLoop outer = jit_for(j, first, last, 1, "outer");
    a->outer = jit_index(&outer);
    (a->l.d->inner == 1 ? line : lines)(j, a);
    jit_end_for(j, &outer);
}

/* --- calls --- */

int64_t loss_task_lines(const LossDesc *d)
{
    return items_per_task(d->classes * d->inner);
}

void loss_lower_lines(Lowering *l, const Node *n, const char *name, KernelEmit *emit,
                      const LossDesc *d)
{
    CallBuf bufs[CALL_MAX_BUFS];
    int n_bufs = node_bufs(n, bufs);
    int64_t tasks = d->classes && d->inner ? divide_up(d->outer, loss_task_lines(d)) : 0;
    lower_pod_call(l, name, emit, d, DESC_BYTES(LossDesc), tasks, bufs, n_bufs);
}
