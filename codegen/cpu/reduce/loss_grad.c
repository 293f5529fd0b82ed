/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The gradient of cross-entropy in the logits: dloss / count * (softmax - (1-e) onehot - e /
 * classes), e the smoothing.  With class weights w it is dloss / count * (a softmax - (1-e)
 * w[label] onehot - e w / classes), a such that the gradient sums to 0 over the classes. */
#include "codegen/cpu/reduce/loss_lines.h"
#include "codegen/cpu/rules.h"
#include "codegen/jit/jit_short.h"

#include <math.h>

typedef void EachLabel(Jit *j, const LossLine *l, JitValue line, JitValue label, void *user);

static void each_label(Jit *j, const LossLine *l, EachLabel *body, void *user)
{
    JitLoop i = jit_for(j, jit_i64(j, 0), jit_i64(j, l->d->outer * l->d->inner), 1, "line");
    JitValue label = loss_label(j, l->d, jit_index(&i));
    JitIf valid = jit_if(j, loss_label_is_valid(j, label));
    body(j, l, jit_index(&i), label, user);
    jit_end_if(j, &valid);
    jit_end_for(j, &i);
}

static void count_one(Jit *j, const LossLine *l, JitValue line, JitValue label, void *user)
{
    (void)l, (void)line, (void)label;
    loss_add(j, *(JitVar *)user, jit_i64(j, 1));
}

static void add_weight(Jit *j, const LossLine *l, JitValue line, JitValue label, void *user)
{
    JitValue sums = user, at = jit_and(j, line, jit_i64(j, LOSS_WEIGHT_SUMS - 1));
    JitValue weight = jit_cast(j, loss_class_weight(j, l, label), jit_types(j)->f64);
    at = jit_tmp(j, at);
    jit_store(j, sums, at, jit_add(j, jit_load(j, sums, at), weight));
}

/* The sum of the weights of all labels. */
static void add_weights(Jit *j, const LossLine *l, JitVar total)
{
    JitType f64 = jit_types(j)->f64;
    JitVar array = jit_array_var(j, f64, LOSS_WEIGHT_SUMS, "sums");
    JitValue sums = jit_array_ptr(j, array, jit_pointer_to(j, f64));
    JitLoop i = jit_for(j, jit_i64(j, 0), jit_i64(j, LOSS_WEIGHT_SUMS), 1, "i");
    jit_store(j, sums, jit_index(&i), jit_zero(j, f64));
    jit_end_for(j, &i);
    each_label(j, l, add_weight, sums);
    i = jit_for(j, jit_i64(j, 0), jit_i64(j, LOSS_WEIGHT_SUMS), 1, "i");
    loss_add(j, total, jit_load(j, sums, jit_index(&i)));
    jit_end_for(j, &i);
}

/* The number, or the weight, of all labels: a scalar f32; infinity for 0, so that the gradient of a
 * loss without labels, or without any that weighs, is 0 as that loss is. */
static JitValue count_labels(Jit *j, const LossLine *l)
{
    const JitTypes *t = jit_types(j);
    JitType type = loss_count_type(j, l->d);
    JitVar count = jit_var(j, type, "count"), total = jit_var(j, t->f32, "total");
    jit_set(j, count, jit_zero(j, type));
    if (l->weight)
        add_weights(j, l, count);
    else
        each_label(j, l, count_one, &count);
    jit_set(j, total, jit_f32(j, (double)INFINITY));
    JitIf some = jit_if(j, jit_compare(j, JIT_GT, jit_get(count), jit_zero(j, type)));
    jit_set(j, total, jit_cast(j, jit_get(count), t->f32));
    jit_end_if(j, &some);
    return jit_get(total);
}

/* The gradient of one line's loss; NULL when every line has its own. */
static JitValue gradient_scale(Jit *j, const LossLine *l)
{
    if (l->d->reduction == LOSS_NONE)
        return NULL;
    JitValue n = l->d->reduction == LOSS_MEAN ? count_labels(j, l) : NULL;
    JitValue dloss = jit_load(j, buf_f32(j, 2), jit_i64(j, 0));
    return n ? divide(j, dloss, n) : dloss;
}

/* a / sum, vectors */
static JitValue softmax_factor(Jit *j, const LossLine *l)
{
    double e = l->d->smoothing;
    if (!l->weight || e == 0)
        return divide(j, jit_vf(j, 1), l->sum);
    JitValue a = mul(j, l->label_weight, jit_vf(j, 1 - e));
    a = add(j, a, mul(j, l->all_weights, jit_vf(j, e / (double)l->d->classes)));
    return divide(j, a, l->sum);
}

/* Without smoothing the label's weight is a factor of everything. */
static JitValue weighted_scale(Jit *j, const LossLine *l, JitValue scale)
{
    return l->weight && l->d->smoothing == 0 ? mul(j, scale, l->label_weight) : scale;
}

/* a e^(x - max) / sum - e w / classes */
static JitValue smooth_part(Jit *j, const LossLine *l, Lanes v)
{
    JitValue x, p = mul(j, loss_shifted_exp(j, l, v, &x), l->sum);
    double each = l->d->smoothing / (double)l->d->classes;
    if (each > 0 && l->weight)
        p = sub(j, p, mul(j, loss_class_weights(j, l, v), jit_vf(j, each)));
    else if (each > 0)
        p = sub(j, p, jit_vf(j, each));
    return p;
}

/* What is taken from the label's share, vectors; own: of smoothing, too. */
static JitValue label_target(Jit *j, const LossLine *l, bool own)
{
    double e = l->d->smoothing;
    JitValue target = vf(j, 1 - e + (own ? e / (double)l->d->classes : 0));
    return l->weight && e > 0 ? mul(j, target, l->label_weight) : target;
}

static void grad_pass(Jit *j, Lanes v, void *user)
{
    LossLine *l = user;
    JitValue g = mul(j, smooth_part(j, l, v), l->scale);
    store_lanes(j, l->out, l->offset, v, g);
}

static void zero_pass(Jit *j, Lanes v, void *user)
{
    LossLine *l = user;
    store_lanes(j, l->out, l->offset, v, vf(j, 0));
}

/* The label's element is corrected before it is scaled: p - 1 may cancel. */
static void grad_line(Jit *j, LossLines *a)
{
    const JitTypes *t = jit_types(j);
    LossLine *l = &a->l;
    JitValue label = loss_label(j, l->d, a->outer);
    l->offset = mul(j, a->outer, jit_i64(j, l->d->classes));
    JitIf valid = jit_if(j, loss_label_is_valid(j, label));
    if (l->weight)
        l->label_weight = splat(j, loss_class_weight(j, l, label));
    l->scale = splat(j, a->scale ? a->scale : jit_load(j, a->each, a->outer));
    l->scale = weighted_scale(j, l, l->scale);
    loss_scan_line(j, l);
    l->sum = softmax_factor(j, l);
    JitValue at = add(j, l->offset, label), x;
    Lanes one = {label, jit_i64(j, 1), 0};
    JitValue p = mul(j, loss_shifted_exp(j, l, one, &x), l->sum);
    JitValue g = jit_lane(j, mul(j, sub(j, p, label_target(j, l, true)), l->scale), 0);
    each_vector(j, l->d->classes, 1, grad_pass, l);
    jit_store(j, l->out, at, jit_cast(j, g, t->f32));
    jit_else(j, &valid);
    each_vector(j, l->d->classes, 1, zero_pass, l);
    jit_end_if(j, &valid);
}

static void class_grad(Jit *j, LossLine *l, Lanes v)
{
    JitValue p = smooth_part(j, l, v);
    p = jit_vselect(j, loss_is_label(j, l), sub(j, p, label_target(j, l, false)), p);
    JitValue g = jit_vselect(j, loss_valid_labels(j, l), mul(j, p, l->scale), l->zero);
    store_lanes(j, l->out, l->offset, v, g);
}

static void grad_vector(Jit *j, Lanes v, void *user)
{
    LossLines *a = user;
    LossLine *l = &a->l;
    loss_scan_lines(j, l, v, a->outer);
    l->sum = softmax_factor(j, l);
    l->scale = a->scale ? splat(j, a->scale) : load_lanes(j, a->each, loss_first_line(j, a), v, 0);
    l->scale = weighted_scale(j, l, l->scale);
    l->zero = vf(j, 0);
    loss_each_class(j, l, v, class_grad);
}

static void grad_lines(Jit *j, LossLines *a)
{
    each_vector(j, a->l.d->inner, 1, grad_vector, a);
}

/* logits, labels, dloss, weights?, dlogits */
static void emit_loss_grad(Jit *j, const void *desc)
{
    const LossDesc *d = desc;
    JitValue first, last;
    LossLines a = {.l = {.d = d, .x = buf_f32(j, 0), .out = buf_f32(j, d->weighted ? 4 : 3)}};
    loss_use_weights(j, &a.l, 3);
    a.scale = gradient_scale(j, &a.l);
    a.each = buf_f32(j, 2);
    task_items(j, loss_task_lines(d), d->outer, &first, &last);
    loss_each_line(j, &a, first, last, grad_line, grad_lines);
}

void cpu_cross_entropy_grad(Lowering *l, const Node *n)
{
    LossDesc d = loss_describe(l, n);
    loss_lower_lines(l, n, "cross_entropy_grad", emit_loss_grad, &d);
}
