/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Cross-entropy and its gradient.  Logits are [outer, classes, inner]; a line is the
 * logits of one label.  With inner = 1 vectors lie along the classes of a line, else across lines.
 *
 * With class weights a label counts as much as its class weighs; smoothing weighs every class
 * (torch.nn.CrossEntropyLoss).
 *
 * Exponentials are of differences from the line's largest logit.  A label that is ignore_index, or
 * no class at all, takes no part.  Sums over lines are made in chunks, in double, and
 * joined in order.
 *
 * Longer than 500 lines: the loss and its gradient scan lines with the same twenty functions. */
#include "codegen/cpu/reduce/loss.h"
#include "codegen/cpu/rules.h"

#include "ir/workspace.h"

#include <math.h>

/* A line, or a vector of lines. */
typedef struct Line {
    const LossDesc *d;
    JitValue x, out, offset;
    Accumulator acc, all;
    JitValue max, sum, label, k, picked_zero;
    JitVar picked;
    JitValue scale; /* gradient: dloss / count */
    /* Class weights, NULL without: all, of the class at hand (across lines), their sum; of the
     * label, a vector. */
    JitValue weight, class_weight, all_weights, label_weight;
    JitVar picked_weight;
} Line;

static const double minus_inf = -(double)INFINITY;

static JitValue p_f32(Jit *j, int i)
{
    return jit_buf(j, i, jit_types(j)->p_f32);
}

static JitValue splat(Jit *j, JitValue scalar)
{
    return jit_tmp(j, jit_splat(j, scalar));
}

static JitValue sub(Jit *j, JitValue a, JitValue b)
{
    return jit_tmp(j, jit_sub(j, a, b));
}

static JitValue mul(Jit *j, JitValue a, JitValue b)
{
    return jit_tmp(j, jit_mul(j, a, b));
}

/* --- labels --- */

/* Labels of the lines under a vector, as vi; lanes past the end are -1. */
static JitValue load_labels(Jit *j, const LossDesc *d, JitValue first, Lanes v)
{
    const JitTypes *t = jit_types(j);
    JitVar lanes = jit_array_var(j, t->i32, jit_lanes(j), "labels");
    JitValue p = jit_array_ptr(j, lanes, t->p_i32);
    jit_vstore_aligned(j, p, jit_i64(j, 0), jit_tmp(j, jit_vi(j, -1)));
    JitLoop l = jit_for(j, jit_i64(j, 0), v.n ? v.n : jit_i64(j, jit_lanes(j)), 1, "lane");
    JitValue label = loss_label(j, d, jit_tmp(j, jit_add(j, first, jit_index(&l))));
    jit_store(j, p, jit_index(&l), jit_cast(j, label, t->i32));
    jit_end_for(j, &l);
    return jit_vload_aligned(j, p, jit_i64(j, 0));
}

/* --- class weights --- */

static JitValue weight_of(Jit *j, const Line *l, JitValue label)
{
    return jit_load(j, l->weight, label);
}

/* Weights of the classes under v: along the classes, or of the class at hand. */
static JitValue class_weights(Jit *j, const Line *l, Lanes v)
{
    return l->d->inner == 1 ? load_lanes(j, l->weight, NULL, v, 0) : l->class_weight;
}

/* Finds the weights in buffer `buf`. */
static void use_weights(Jit *j, Line *l, int buf)
{
    if (!l->d->weighted)
        return;
    l->weight = p_f32(j, buf);
    if (l->d->smoothing == 0)
        return;
    const JitTypes *t = jit_types(j);
    JitVar sum = jit_var(j, t->f64, "weights");
    jit_set(j, sum, jit_zero(j, t->f64));
    JitLoop k = jit_for(j, jit_i64(j, 0), jit_i64(j, l->d->classes), 1, "k");
    JitValue w = jit_cast(j, weight_of(j, l, jit_index(&k)), t->f64);
    jit_set(j, sum, jit_add(j, jit_get(sum), w));
    jit_end_for(j, &k);
    l->all_weights = splat(j, jit_cast(j, jit_get(sum), t->f32));
}

/* --- a line along the classes --- */

static void max_pass(Jit *j, Lanes v, void *user)
{
    Line *l = user;
    accumulate_max(j, &l->acc, v, load_lanes(j, l->x, l->offset, v, minus_inf));
}

static JitValue shifted_exp(Jit *j, const Line *l, Lanes v, JitValue *x)
{
    *x = load_lanes(j, l->x, l->offset, v, minus_inf);
    return jit_vexp(j, jit_sub(j, *x, l->max));
}

static void exp_pass(Jit *j, Lanes v, void *user)
{
    Line *l = user;
    JitValue x;
    accumulate(j, &l->acc, v, shifted_exp(j, l, v, &x));
    if (l->d->smoothing == 0 || l->out)
        return;
    JitValue d = valid_lanes(j, v, sub(j, x, l->max), 0);
    accumulate(j, &l->all, v, l->weight ? mul(j, d, class_weights(j, l, v)) : d);
}

enum { WAYS = 4 };

/* max and sum of e^(x - max), in all lanes; `all`: sum of x - max. */
static void scan_line(Jit *j, Line *l)
{
    int64_t n = l->d->classes;
    l->acc = accumulator(j, WAYS, jit_vf(j, minus_inf));
    each_vector(j, n, WAYS, max_pass, l);
    l->max = splat(j, jit_hmax(j, accumulated_max(j, &l->acc)));
    l->acc = accumulator(j, WAYS, jit_vf(j, 0));
    l->all = accumulator(j, WAYS, jit_vf(j, 0));
    each_vector(j, n, WAYS, exp_pass, l);
    l->sum = splat(j, jit_hsum(j, accumulated(j, &l->acc)));
}

/* (1-e) w[label] (log sum - (x[label] - max)) + e mean(w (log sum - (x - max))), vectors; all: sum
 * of w (x - max) */
static JitValue line_loss(Jit *j, const Line *l, JitValue log_sum, JitValue picked, JitValue all)
{
    double e = l->d->smoothing;
    JitValue loss = mul(j, sub(j, log_sum, picked), jit_vf(j, 1 - e));
    if (l->weight)
        loss = mul(j, loss, l->label_weight);
    if (e == 0)
        return loss;
    if (l->weight) {
        JitValue rest = sub(j, mul(j, log_sum, l->all_weights), all);
        rest = mul(j, rest, jit_vf(j, e / (double)l->d->classes));
        return jit_tmp(j, jit_add(j, loss, rest));
    }
    JitValue mean = mul(j, all, jit_vf(j, 1 / (double)l->d->classes));
    return jit_tmp(j, jit_add(j, loss, mul(j, sub(j, log_sum, mean), jit_vf(j, e))));
}

/* --- loss along the classes --- */

/* The loss of a line with a label. */
static JitValue loss_of_line(Jit *j, Line *l, JitValue line, JitValue label)
{
    l->offset = jit_tmp(j, jit_mul(j, line, jit_i64(j, l->d->classes)));
    scan_line(j, l);
    JitValue x = jit_load(j, l->x, jit_tmp(j, jit_add(j, l->offset, label)));
    JitValue picked = sub(j, splat(j, x), l->max);
    JitValue all = splat(j, jit_hsum(j, accumulated(j, &l->all)));
    if (l->weight)
        l->label_weight = splat(j, weight_of(j, l, label));
    return jit_lane(j, line_loss(j, l, jit_vlog(j, l->sum), picked, all), 0);
}

static void add_line(Jit *j, Line *l, LossTotals *s, JitValue line)
{
    const JitTypes *t = jit_types(j);
    JitValue label = loss_label(j, l->d, line);
    JitIf valid = jit_if(j, loss_label_is_valid(j, label));
    loss_add(j, s->sum, jit_cast(j, loss_of_line(j, l, line, label), t->f64));
    JitValue one = l->weight ? jit_cast(j, weight_of(j, l, label), t->f64) : jit_i64(j, 1);
    loss_add(j, s->count, one);
    jit_end_if(j, &valid);
}

/* reduction = none: 0 where there is no label. */
static void store_line(Jit *j, Line *l, JitValue out, JitValue line)
{
    JitVar loss = jit_var(j, jit_types(j)->f32, "loss");
    jit_set(j, loss, jit_f32(j, 0));
    JitValue label = loss_label(j, l->d, line);
    JitIf valid = jit_if(j, loss_label_is_valid(j, label));
    jit_set(j, loss, loss_of_line(j, l, line, label));
    jit_end_if(j, &valid);
    jit_store(j, out, line, jit_get(loss));
}

/* --- loss across lines --- */

typedef void LineStep(Jit *j, Line *l, Lanes v);

static void each_class(Jit *j, Line *l, Lanes v, LineStep *step)
{
    JitValue start = l->offset;
    JitLoop k = jit_for(j, jit_i64(j, 0), jit_i64(j, l->d->classes), 1, "k");
    l->offset = jit_tmp(j, jit_muladd_i64(j, jit_index(&k), l->d->inner, start));
    l->k = splat(j, jit_cast(j, jit_index(&k), jit_types(j)->i32));
    if (l->weight)
        l->class_weight = splat(j, weight_of(j, l, jit_index(&k)));
    step(j, l, v);
    jit_end_for(j, &k);
    l->offset = start;
}

static void class_max(Jit *j, Line *l, Lanes v)
{
    max_pass(j, v, l);
}

static JitValue is_label(Jit *j, const Line *l)
{
    return jit_vmask(j, JIT_EQ, l->k, l->label);
}

static void class_exp(Jit *j, Line *l, Lanes v)
{
    JitValue x, e = shifted_exp(j, l, v, &x);
    accumulate(j, &l->acc, v, e);
    JitValue d = sub(j, x, l->max);
    if (l->d->smoothing > 0 && !l->out)
        accumulate(j, &l->all, v, l->weight ? mul(j, d, l->class_weight) : d);
    if (l->weight)
        jit_set(j, l->picked_weight,
                jit_vselect(j, is_label(j, l), l->class_weight, jit_get(l->picked_weight)));
    jit_set(j, l->picked, jit_vselect(j, is_label(j, l), d, jit_get(l->picked)));
}

static void scan_lines(Jit *j, Line *l, Lanes v)
{
    l->acc = accumulator(j, 1, jit_vf(j, minus_inf));
    each_class(j, l, v, class_max);
    l->max = jit_tmp(j, accumulated_max(j, &l->acc));
    l->acc = accumulator(j, 1, jit_vf(j, 0));
    l->all = accumulator(j, 1, jit_vf(j, 0));
    l->picked = jit_var(j, jit_types(j)->vf, "picked");
    jit_set(j, l->picked, jit_vf(j, 0));
    l->picked_weight = jit_var(j, jit_types(j)->vf, "weight");
    jit_set(j, l->picked_weight, jit_vf(j, 0));
    each_class(j, l, v, class_exp);
    l->sum = jit_tmp(j, accumulated(j, &l->acc));
    l->label_weight = jit_get(l->picked_weight);
}

static JitValue valid_labels(Jit *j, const Line *l)
{
    return jit_vmask(j, JIT_GE, l->label, jit_vi(j, 0));
}

static void start_lines(Jit *j, Line *l, Lanes v, JitValue outer)
{
    JitValue first = jit_muladd_i64(j, outer, l->d->inner, v.at);
    l->label = load_labels(j, l->d, jit_tmp(j, first), v);
    l->offset = jit_tmp(j, jit_mul(j, outer, jit_i64(j, l->d->classes * l->d->inner)));
}

typedef struct Across {
    Line l;
    LossTotals s;
    JitValue outer;
    JitValue each; /* reduction = none: losses, or their gradients */
    JitValue scale;
} Across;

/* Losses of the lines under v, 0 without a label. */
static JitValue loss_of_lines(Jit *j, Lanes v, Across *a)
{
    Line *l = &a->l;
    start_lines(j, l, v, a->outer);
    scan_lines(j, l, v);
    JitValue all = accumulated(j, &l->all);
    JitValue loss = line_loss(j, l, jit_vlog(j, l->sum), jit_get(l->picked), all);
    return jit_vselect(j, valid_labels(j, l), loss, jit_tmp(j, jit_vf(j, 0)));
}

static void loss_lines(Jit *j, Lanes v, void *user)
{
    const JitTypes *t = jit_types(j);
    Across *a = user;
    JitValue loss = loss_of_lines(j, v, a), mask = valid_labels(j, &a->l);
    JitValue each = a->l.weight ? a->l.label_weight : jit_vf(j, 1);
    JitValue one = jit_vselect(j, mask, jit_tmp(j, each), jit_tmp(j, jit_vf(j, 0)));
    loss_add(j, a->s.sum, jit_cast(j, jit_hsum(j, loss), t->f64));
    loss_add(j, a->s.count, jit_cast(j, jit_hsum(j, one), loss_count_type(j, a->l.d)));
}

static JitValue first_line(Jit *j, const Across *a)
{
    return jit_tmp(j, jit_mul(j, a->outer, jit_i64(j, a->l.d->inner)));
}

static void store_lines(Jit *j, Lanes v, void *user)
{
    Across *a = user;
    store_lanes(j, a->each, first_line(j, a), v, loss_of_lines(j, v, a));
}

/* --- kernels of the loss --- */

/* logits, labels, weights?, workspace.  Task: a chunk of the lines (inner = 1) or of the outer dim.
 */
static void emit_loss(Jit *j, const void *desc)
{
    const LossDesc *d = desc;
    JitType f64 = jit_types(j)->f64;
    Across a = {.l = {.d = d, .x = p_f32(j, 0)}};
    use_weights(j, &a.l, 2);
    JitLoop chunk = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "chunk");
    JitValue next = jit_add(j, jit_index(&chunk), jit_i64(j, 1));
    a.s = loss_totals(j, d, f64);
    JitLoop outer = jit_for(j, part_start(j, jit_index(&chunk), d->outer, (int)d->chunks),
                            part_start(j, next, d->outer, (int)d->chunks), 1, "outer");
    a.outer = jit_index(&outer);
    if (d->inner == 1)
        add_line(j, &a.l, &a.s, a.outer);
    else
        each_vector(j, d->inner, 1, loss_lines, &a);
    jit_end_for(j, &outer);
    loss_store_totals(j, d, jit_index(&chunk), &a.s, f64);
    jit_end_for(j, &chunk);
}

static int64_t task_lines(const LossDesc *d)
{
    return items_per_task(d->classes * d->inner);
}

/* logits, labels, weights?, losses */
static void emit_loss_each(Jit *j, const void *desc)
{
    const LossDesc *d = desc;
    JitValue first, last;
    Across a = {.l = {.d = d, .x = p_f32(j, 0)}, .each = p_f32(j, d->weighted ? 3 : 2)};
    use_weights(j, &a.l, 2);
    task_items(j, task_lines(d), d->outer, &first, &last);
    JitLoop outer = jit_for(j, first, last, 1, "outer");
    a.outer = jit_index(&outer);
    if (d->inner == 1)
        store_line(j, &a.l, a.each, a.outer);
    else
        each_vector(j, d->inner, 1, store_lines, &a);
    jit_end_for(j, &outer);
}

static void emit_loss_join(Jit *j, const void *desc)
{
    loss_emit_ratio(j, desc, jit_types(j)->f64);
}

static void lower_loss_each(Lowering *l, const Node *n, const LossDesc *d)
{
    CallBuf bufs[4];
    int n_bufs = 0;
    for (int i = 0; i < n->n_in; i++)
        bufs[n_bufs++] = (CallBuf){n->in[i], 0};
    bufs[n_bufs++] = (CallBuf){n->out[0], 0};
    int64_t tasks = d->classes && d->inner ? divide_up(d->outer, task_lines(d)) : 0;
    lower_pod_call(l, "cross_entropy_each", emit_loss_each, d, DESC_BYTES(LossDesc), tasks, bufs,
                   n_bufs);
}

void cpu_cross_entropy(Lowering *l, const Node *n)
{
    LossDesc d = loss_describe(l, n);
    if (d.reduction == LOSS_NONE) {
        lower_loss_each(l, n, &d);
        return;
    }
    loss_lower_chunked(l, n, emit_loss, emit_loss_join, "loss_join");
}

/* --- gradient: dloss / count * (softmax - (1-e) onehot - e / classes); with weights
 * dloss / count * (a softmax - (1-e) w[label] onehot - e w / classes), a such that it sums to 0 ---
 */

/* The number, or the weight, of all labels: a scalar f32; infinity for 0, so that the gradient of a
 * loss without labels, or without any that weighs, is 0 as that loss is. */
static JitValue count_labels(Jit *j, const Line *l)
{
    const JitTypes *t = jit_types(j);
    const LossDesc *d = l->d;
    LossTotals s = loss_totals(j, d, t->f64);
    JitLoop i = jit_for(j, jit_i64(j, 0), jit_i64(j, d->outer * d->inner), 1, "line");
    JitValue label = loss_label(j, d, jit_index(&i));
    JitIf valid = jit_if(j, loss_label_is_valid(j, label));
    JitValue one = l->weight ? jit_cast(j, weight_of(j, l, label), t->f64) : jit_i64(j, 1);
    loss_add(j, s.count, one);
    jit_end_if(j, &valid);
    jit_end_for(j, &i);
    JitVar total = jit_var(j, t->f32, "total");
    jit_set(j, total, jit_f32(j, (double)INFINITY));
    JitIf some =
        jit_if(j, jit_compare(j, JIT_GT, jit_get(s.count), jit_zero(j, loss_count_type(j, d))));
    jit_set(j, total, jit_cast(j, jit_get(s.count), t->f32));
    jit_end_if(j, &some);
    return jit_get(total);
}

/* The gradient of one line's loss; NULL when every line has its own. */
static JitValue gradient_scale(Jit *j, const Line *l)
{
    if (l->d->reduction == LOSS_NONE)
        return NULL;
    JitValue n = l->d->reduction == LOSS_MEAN ? count_labels(j, l) : NULL;
    JitValue dloss = jit_load(j, p_f32(j, 2), jit_i64(j, 0));
    return n ? jit_tmp(j, jit_div(j, dloss, n)) : dloss;
}

/* a / sum, vectors */
static JitValue softmax_factor(Jit *j, const Line *l)
{
    double e = l->d->smoothing;
    if (!l->weight || e == 0)
        return jit_tmp(j, jit_div(j, jit_vf(j, 1), l->sum));
    JitValue a = mul(j, l->label_weight, jit_vf(j, 1 - e));
    a = jit_tmp(j, jit_add(j, a, mul(j, l->all_weights, jit_vf(j, e / (double)l->d->classes))));
    return jit_tmp(j, jit_div(j, a, l->sum));
}

/* Without smoothing the label's weight is a factor of everything. */
static JitValue weighted_scale(Jit *j, const Line *l, JitValue scale)
{
    return l->weight && l->d->smoothing == 0 ? mul(j, scale, l->label_weight) : scale;
}

/* a e^(x - max) / sum - e w / classes */
static JitValue smooth_part(Jit *j, const Line *l, Lanes v)
{
    JitValue x, p = mul(j, shifted_exp(j, l, v, &x), l->sum);
    double each = l->d->smoothing / (double)l->d->classes;
    if (each > 0 && l->weight)
        p = sub(j, p, mul(j, class_weights(j, l, v), jit_vf(j, each)));
    else if (each > 0)
        p = sub(j, p, jit_vf(j, each));
    return p;
}

/* What is taken from the label's share, vectors; own: of smoothing, too. */
static JitValue label_target(Jit *j, const Line *l, bool own)
{
    double e = l->d->smoothing;
    JitValue target = jit_tmp(j, jit_vf(j, 1 - e + (own ? e / (double)l->d->classes : 0)));
    return l->weight && e > 0 ? mul(j, target, l->label_weight) : target;
}

static void grad_pass(Jit *j, Lanes v, void *user)
{
    Line *l = user;
    JitValue g = mul(j, smooth_part(j, l, v), l->scale);
    store_lanes(j, l->out, l->offset, v, g);
}

static void zero_pass(Jit *j, Lanes v, void *user)
{
    Line *l = user;
    store_lanes(j, l->out, l->offset, v, jit_tmp(j, jit_vf(j, 0)));
}

/* The label's element is corrected before it is scaled: p - 1 may cancel. */
static void grad_line(Jit *j, Line *l, JitValue scale, JitValue line)
{
    const JitTypes *t = jit_types(j);
    JitValue label = loss_label(j, l->d, line);
    l->offset = jit_tmp(j, jit_mul(j, line, jit_i64(j, l->d->classes)));
    JitIf valid = jit_if(j, loss_label_is_valid(j, label));
    if (l->weight)
        l->label_weight = splat(j, weight_of(j, l, label));
    l->scale = scale ? splat(j, scale) : splat(j, jit_load(j, p_f32(j, 2), line));
    l->scale = weighted_scale(j, l, l->scale);
    scan_line(j, l);
    l->sum = softmax_factor(j, l);
    JitValue at = jit_tmp(j, jit_add(j, l->offset, label)), x;
    Lanes one = {label, jit_i64(j, 1), 0};
    JitValue p = mul(j, shifted_exp(j, l, one, &x), l->sum);
    JitValue g = jit_lane(j, mul(j, sub(j, p, label_target(j, l, true)), l->scale), 0);
    each_vector(j, l->d->classes, 1, grad_pass, l);
    jit_store(j, l->out, at, jit_cast(j, g, t->f32));
    jit_else(j, &valid);
    each_vector(j, l->d->classes, 1, zero_pass, l);
    jit_end_if(j, &valid);
}

static void class_grad(Jit *j, Line *l, Lanes v)
{
    JitValue p = smooth_part(j, l, v);
    p = jit_vselect(j, is_label(j, l), sub(j, p, label_target(j, l, false)), p);
    JitValue g = jit_vselect(j, valid_labels(j, l), mul(j, p, l->scale), l->picked_zero);
    store_lanes(j, l->out, l->offset, v, g);
}

static void grad_lines(Jit *j, Lanes v, void *user)
{
    Across *a = user;
    Line *l = &a->l;
    start_lines(j, l, v, a->outer);
    scan_lines(j, l, v);
    l->sum = softmax_factor(j, l);
    l->scale = a->scale ? splat(j, a->scale) : load_lanes(j, a->each, first_line(j, a), v, 0);
    l->scale = weighted_scale(j, l, l->scale);
    l->picked_zero = jit_tmp(j, jit_vf(j, 0));
    each_class(j, l, v, class_grad);
}

/* logits, labels, dloss, weights?, dlogits */
static void emit_loss_grad(Jit *j, const void *desc)
{
    const LossDesc *d = desc;
    JitValue first, last;
    Across a = {.l = {.d = d, .x = p_f32(j, 0), .out = p_f32(j, d->weighted ? 4 : 3)}};
    use_weights(j, &a.l, 3);
    a.scale = gradient_scale(j, &a.l);
    a.each = p_f32(j, 2);
    task_items(j, task_lines(d), d->outer, &first, &last);
    JitLoop outer = jit_for(j, first, last, 1, "outer");
    a.outer = jit_index(&outer);
    if (d->inner == 1)
        grad_line(j, &a.l, a.scale, a.outer);
    else
        each_vector(j, d->inner, 1, grad_lines, &a);
    jit_end_for(j, &outer);
}

void cpu_cross_entropy_grad(Lowering *l, const Node *n)
{
    LossDesc d = loss_describe(l, n);
    CallBuf bufs[5];
    int n_bufs = 0;
    for (int i = 0; i < n->n_in; i++)
        bufs[n_bufs++] = (CallBuf){n->in[i], 0};
    bufs[n_bufs++] = (CallBuf){n->out[0], 0};
    int64_t tasks = d.classes && d.inner ? divide_up(d.outer, task_lines(&d)) : 0;
    lower_pod_call(l, "cross_entropy_grad", emit_loss_grad, &d, DESC_BYTES(LossDesc), tasks, bufs,
                   n_bufs);
}
