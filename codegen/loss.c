/* Cross-entropy, its gradient and accuracy.  Logits are [outer, classes, inner]; a line is the
 * logits of one label.  With inner = 1 vectors lie along the classes of a line, else across lines.
 *
 * Exponentials are of differences from the line's largest logit.  A label that is ignore_index, or
 * no class at all, takes no part.  Sums over lines are made in REDUCE_CHUNKS parts, in double, and
 * joined in order. */
#include "codegen/vector_loops.h"
#include "ir/cost_rules.h"
#include "ir/support/bug.h"

#include <math.h>

typedef struct LossDesc {
    int64_t outer, classes, inner;
    int64_t label_type, ignore, partial_bytes;
    double smoothing;
} LossDesc;

/* A line, or a vector of lines. */
typedef struct Line {
    const LossDesc *d;
    JitValue x, out, offset;
    Accumulator acc, all;
    JitValue max, sum, label, k, picked_zero;
    JitVar picked;
    JitValue scale; /* gradient: dloss / count */
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

static JitType label_pointer(Jit *j, const LossDesc *d)
{
    const JitTypes *t = jit_types(j);
    return d->label_type == DTYPE_I32 ? t->p_i32 : d->label_type == DTYPE_I64 ? t->p_i64 : t->p_u8;
}

/* Label of line i as i64, -1 when it takes no part. */
static JitValue load_label(Jit *j, const LossDesc *d, JitValue i)
{
    const JitTypes *t = jit_types(j);
    JitVar label = jit_var(j, t->i64, "label");
    jit_set(j, label, jit_cast(j, jit_load(j, jit_buf(j, 1, label_pointer(j, d)), i), t->i64));
    const JitCompare wrong[] = {JIT_EQ, JIT_LT, JIT_GE};
    const int64_t bound[] = {d->ignore, 0, d->classes};
    for (int k = 0; k < 3; k++) {
        JitIf s = jit_if(j, jit_compare(j, wrong[k], jit_get(label), jit_i64(j, bound[k])));
        jit_set(j, label, jit_i64(j, -1));
        jit_end_if(j, &s);
    }
    return jit_get(label);
}

/* Labels of the lines under a vector, as vi; lanes past the end are -1. */
static JitValue load_labels(Jit *j, const LossDesc *d, JitValue first, Lanes v)
{
    const JitTypes *t = jit_types(j);
    JitVar lanes = jit_array_var(j, t->i32, jit_lanes(j), "labels");
    JitValue p = jit_array_ptr(j, lanes, t->p_i32);
    jit_vstore_aligned(j, p, jit_i64(j, 0), jit_tmp(j, jit_vi(j, -1)));
    JitLoop l = jit_for(j, jit_i64(j, 0), v.n ? v.n : jit_i64(j, jit_lanes(j)), 1, "lane");
    JitValue label = load_label(j, d, jit_tmp(j, jit_add(j, first, jit_index(&l))));
    jit_store(j, p, jit_index(&l), jit_cast(j, label, t->i32));
    jit_end_for(j, &l);
    return jit_vload_aligned(j, p, jit_i64(j, 0));
}

static JitValue is_valid(Jit *j, JitValue label)
{
    return jit_compare(j, JIT_GE, label, jit_i64(j, 0));
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
    if (l->d->smoothing > 0 && !l->out)
        accumulate(j, &l->all, v, valid_lanes(j, v, sub(j, x, l->max), 0));
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

/* (1-e) (log sum - (x[label] - max)) + e (log sum - mean(x - max)), vectors */
static JitValue line_loss(Jit *j, const Line *l, JitValue log_sum, JitValue picked, JitValue all)
{
    double e = l->d->smoothing;
    JitValue loss = mul(j, sub(j, log_sum, picked), jit_vf(j, 1 - e));
    if (e == 0)
        return loss;
    JitValue mean = mul(j, all, jit_vf(j, 1 / (double)l->d->classes));
    return jit_tmp(j, jit_add(j, loss, mul(j, sub(j, log_sum, mean), jit_vf(j, e))));
}

/* --- partial results: sum of losses (f64) and number of labels (i64) --- */

typedef struct Totals {
    JitVar sum, count;
} Totals;

static Totals new_totals(Jit *j, JitType sum_type)
{
    const JitTypes *t = jit_types(j);
    Totals s = {jit_var(j, sum_type, "sum"), jit_var(j, t->i64, "count")};
    jit_set(j, s.sum, jit_zero(j, sum_type));
    jit_set(j, s.count, jit_i64(j, 0));
    return s;
}

static void add_to(Jit *j, JitVar var, JitValue v)
{
    jit_set(j, var, jit_add(j, jit_get(var), v));
}

static JitValue partial(Jit *j, const LossDesc *d, int buf, JitValue chunk, JitType pointer)
{
    JitValue bytes = jit_mul(j, chunk, jit_i64(j, d->partial_bytes));
    JitValue p = jit_offset(j, jit_buf(j, buf, jit_types(j)->p_u8), jit_tmp(j, bytes));
    return jit_tmp(j, jit_cast(j, p, pointer));
}

static void store_totals(Jit *j, const LossDesc *d, JitValue chunk, const Totals *s, JitType type)
{
    JitType pointer = jit_pointer_to(j, type);
    jit_store(j, partial(j, d, 2, chunk, pointer), jit_i64(j, 0), jit_get(s->sum));
    jit_store(j, partial(j, d, 2, chunk, jit_types(j)->p_i64), jit_i64(j, 1), jit_get(s->count));
}

/* --- loss along the classes --- */

static void add_line(Jit *j, Line *l, Totals *s, JitValue line)
{
    const JitTypes *t = jit_types(j);
    JitValue label = load_label(j, l->d, line);
    JitIf valid = jit_if(j, is_valid(j, label));
    l->offset = jit_tmp(j, jit_mul(j, line, jit_i64(j, l->d->classes)));
    scan_line(j, l);
    JitValue x = jit_load(j, l->x, jit_tmp(j, jit_add(j, l->offset, label)));
    JitValue picked = sub(j, splat(j, x), l->max);
    JitValue all = splat(j, jit_hsum(j, accumulated(j, &l->all)));
    JitValue loss = line_loss(j, l, jit_vlog(j, l->sum), picked, all);
    add_to(j, s->sum, jit_cast(j, jit_lane(j, loss, 0), t->f64));
    add_to(j, s->count, jit_i64(j, 1));
    jit_end_if(j, &valid);
}

/* --- loss across lines --- */

typedef void LineStep(Jit *j, Line *l, Lanes v);

static void each_class(Jit *j, Line *l, Lanes v, LineStep *step)
{
    JitValue start = l->offset;
    JitLoop k = jit_for(j, jit_i64(j, 0), jit_i64(j, l->d->classes), 1, "k");
    l->offset = jit_tmp(j, jit_muladd_i64(j, jit_index(&k), l->d->inner, start));
    l->k = splat(j, jit_cast(j, jit_index(&k), jit_types(j)->i32));
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
    accumulate(j, &l->all, v, d);
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
    each_class(j, l, v, class_exp);
    l->sum = jit_tmp(j, accumulated(j, &l->acc));
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
    Totals s;
    JitValue outer;
} Across;

static void loss_lines(Jit *j, Lanes v, void *user)
{
    const JitTypes *t = jit_types(j);
    Across *a = user;
    Line *l = &a->l;
    start_lines(j, l, v, a->outer);
    scan_lines(j, l, v);
    JitValue all = accumulated(j, &l->all);
    JitValue loss = line_loss(j, l, jit_vlog(j, l->sum), jit_get(l->picked), all);
    JitValue mask = valid_labels(j, l);
    loss = jit_vselect(j, mask, loss, jit_tmp(j, jit_vf(j, 0)));
    JitValue one = jit_vselect(j, mask, jit_tmp(j, jit_vf(j, 1)), jit_tmp(j, jit_vf(j, 0)));
    add_to(j, a->s.sum, jit_cast(j, jit_hsum(j, loss), t->f64));
    add_to(j, a->s.count, jit_cast(j, jit_hsum(j, one), t->i64));
}

/* --- kernels of the loss --- */

/* logits, labels, workspace.  Task: a chunk of the lines (inner = 1) or of the outer dim. */
static void emit_loss(Jit *j, const void *desc)
{
    const LossDesc *d = desc;
    JitType f64 = jit_types(j)->f64;
    Across a = {.l = {.d = d, .x = p_f32(j, 0)}};
    JitLoop chunk = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "chunk");
    JitValue next = jit_add(j, jit_index(&chunk), jit_i64(j, 1));
    a.s = new_totals(j, f64);
    JitLoop outer = jit_for(j, part_start(j, jit_index(&chunk), d->outer, REDUCE_CHUNKS),
                            part_start(j, next, d->outer, REDUCE_CHUNKS), 1, "outer");
    a.outer = jit_index(&outer);
    if (d->inner == 1)
        add_line(j, &a.l, &a.s, a.outer);
    else
        each_vector(j, d->inner, 1, loss_lines, &a);
    jit_end_for(j, &outer);
    store_totals(j, d, jit_index(&chunk), &a.s, f64);
    jit_end_for(j, &chunk);
}

/* workspace -> sum / count, 0 without labels; type: of the sums */
static void emit_ratio(Jit *j, const LossDesc *d, JitType type)
{
    const JitTypes *t = jit_types(j);
    Totals s = new_totals(j, t->f64);
    JitLoop c = jit_for(j, jit_i64(j, 0), jit_i64(j, REDUCE_CHUNKS), 1, "chunk");
    JitValue sums = partial(j, d, 0, jit_index(&c), jit_pointer_to(j, type));
    JitValue counts = partial(j, d, 0, jit_index(&c), t->p_i64);
    add_to(j, s.sum, jit_cast(j, jit_load(j, sums, jit_i64(j, 0)), t->f64));
    add_to(j, s.count, jit_load(j, counts, jit_i64(j, 1)));
    jit_end_for(j, &c);
    JitVar result = jit_var(j, t->f32, "result");
    jit_set(j, result, jit_f32(j, 0));
    JitIf some = jit_if(j, jit_compare(j, JIT_GT, jit_get(s.count), jit_i64(j, 0)));
    JitValue ratio = jit_div(j, jit_get(s.sum), jit_cast(j, jit_get(s.count), t->f64));
    jit_set(j, result, jit_cast(j, ratio, t->f32));
    jit_end_if(j, &some);
    jit_store(j, p_f32(j, 1), jit_i64(j, 0), jit_get(result));
}

static void emit_loss_join(Jit *j, const void *desc)
{
    emit_ratio(j, desc, jit_types(j)->f64);
}

static LossDesc describe(const Lowering *l, const Node *n)
{
    AxisShape a = axis_shape(value_type(l->graph, n->in[0]), node_int(n, ATTR_axis, -1));
    LossDesc d = {a.outer, a.length, a.inner, 0, 0, 0, 0};
    d.label_type = value_type(l->graph, n->in[1])->dtype;
    d.ignore = node_int(n, ATTR_ignore_index, -100);
    d.smoothing = node_float(n, ATTR_smoothing, 0);
    if (reduce_is_chunked(l->graph, n))
        d.partial_bytes = reduce_partial_bytes(l->graph, n);
    return d;
}

static void lower_chunked(Lowering *l, const Node *n, KernelEmit *emit, KernelEmit *join)
{
    LossDesc d = describe(l, n);
    const CallBuf in[] = {{n->in[0], 0}, {n->in[1], 0}, {VALUE_NONE, 0}};
    const CallBuf out[] = {{VALUE_NONE, 0}, {n->out[0], 0}};
    lower_pod_call(l, op_name(n->op), emit, &d, sizeof d, REDUCE_CHUNKS, in, 3);
    lower_pod_join(l, join == emit_loss_join ? "loss_join" : "accuracy_join", join, &d, sizeof d, 1,
                   out, 2);
}

void lower_cross_entropy(Lowering *l, const Node *n)
{
    lower_chunked(l, n, emit_loss, emit_loss_join);
}

/* --- gradient: dloss / count * (softmax - (1-e) onehot - e / classes) --- */

static JitValue gradient_scale(Jit *j, const LossDesc *d)
{
    const JitTypes *t = jit_types(j);
    Totals s = new_totals(j, t->f64);
    JitLoop i = jit_for(j, jit_i64(j, 0), jit_i64(j, d->outer * d->inner), 1, "line");
    JitIf valid = jit_if(j, is_valid(j, load_label(j, d, jit_index(&i))));
    add_to(j, s.count, jit_i64(j, 1));
    jit_end_if(j, &valid);
    jit_end_for(j, &i);
    JitValue n = jit_cast(j, jit_max_i64(j, jit_get(s.count), jit_i64(j, 1)), t->f32);
    return jit_tmp(j, jit_div(j, jit_load(j, p_f32(j, 2), jit_i64(j, 0)), n));
}

/* scale * (e^(x - max) / sum - e / classes) */
static JitValue smooth_part(Jit *j, const Line *l, Lanes v)
{
    JitValue x, p = mul(j, shifted_exp(j, l, v, &x), l->sum);
    if (l->d->smoothing > 0)
        p = sub(j, p, jit_vf(j, l->d->smoothing / (double)l->d->classes));
    return p;
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
    JitValue label = load_label(j, l->d, line);
    l->offset = jit_tmp(j, jit_mul(j, line, jit_i64(j, l->d->classes)));
    JitIf valid = jit_if(j, is_valid(j, label));
    scan_line(j, l);
    l->sum = jit_tmp(j, jit_div(j, jit_vf(j, 1), l->sum));
    JitValue at = jit_tmp(j, jit_add(j, l->offset, label)), x;
    Lanes one = {label, jit_i64(j, 1), 0};
    JitValue p = mul(j, shifted_exp(j, l, one, &x), l->sum);
    double e = l->d->smoothing;
    JitValue target = jit_f32(j, 1 - e + e / (double)l->d->classes);
    JitValue g = jit_tmp(j, jit_mul(j, jit_sub(j, jit_lane(j, p, 0), target), scale));
    each_vector(j, l->d->classes, 1, grad_pass, l);
    jit_store(j, l->out, at, jit_cast(j, g, t->f32));
    jit_else(j, &valid);
    each_vector(j, l->d->classes, 1, zero_pass, l);
    jit_end_if(j, &valid);
}

static void class_grad(Jit *j, Line *l, Lanes v)
{
    JitValue p = smooth_part(j, l, v);
    p = jit_vselect(j, is_label(j, l), sub(j, p, jit_vf(j, 1 - l->d->smoothing)), p);
    JitValue g = jit_vselect(j, valid_labels(j, l), mul(j, p, l->scale), l->picked_zero);
    store_lanes(j, l->out, l->offset, v, g);
}

static void grad_lines(Jit *j, Lanes v, void *user)
{
    Across *a = user;
    Line *l = &a->l;
    start_lines(j, l, v, a->outer);
    scan_lines(j, l, v);
    l->sum = jit_tmp(j, jit_div(j, jit_vf(j, 1), l->sum));
    l->picked_zero = jit_tmp(j, jit_vf(j, 0));
    each_class(j, l, v, class_grad);
}

static int64_t grad_items(const LossDesc *d)
{
    return items_per_task(d->classes * d->inner);
}

/* logits, labels, dloss, dlogits */
static void emit_loss_grad(Jit *j, const void *desc)
{
    const LossDesc *d = desc;
    JitValue scale = gradient_scale(j, d), first, last;
    Across a = {.l = {.d = d, .x = p_f32(j, 0), .out = p_f32(j, 3), .scale = splat(j, scale)}};
    task_items(j, grad_items(d), d->outer, &first, &last);
    JitLoop outer = jit_for(j, first, last, 1, "outer");
    a.outer = jit_index(&outer);
    if (d->inner == 1)
        grad_line(j, &a.l, scale, a.outer);
    else
        each_vector(j, d->inner, 1, grad_lines, &a);
    jit_end_for(j, &outer);
}

void lower_cross_entropy_grad(Lowering *l, const Node *n)
{
    LossDesc d = describe(l, n);
    const CallBuf bufs[] = {{n->in[0], 0}, {n->in[1], 0}, {n->in[2], 0}, {n->out[0], 0}};
    int64_t tasks = d.classes && d.inner ? divide_up(d.outer, grad_items(&d)) : 0;
    lower_pod_call(l, "cross_entropy_grad", emit_loss_grad, &d, sizeof d, tasks, bufs, 4);
}

/* --- the largest class --- */

/* First index of the largest of `length` elements at p[offset + k * step]; nan_wins: a NaN counts
 * as largest. */
static JitValue first_largest(Jit *j, JitValue p, JitValue offset, int64_t length, int64_t step,
                              bool nan_wins)
{
    const JitTypes *t = jit_types(j);
    JitVar best = jit_var(j, t->i64, "best"), value = jit_var(j, t->f32, "value");
    jit_set(j, best, jit_i64(j, 0));
    jit_set(j, value, jit_load(j, p, offset));
    JitLoop k = jit_for(j, jit_i64(j, 1), jit_i64(j, length), 1, "k");
    JitValue x = jit_load(j, p, jit_tmp(j, jit_muladd_i64(j, jit_index(&k), step, offset)));
    JitValue better = jit_compare(j, JIT_GT, x, jit_get(value));
    if (nan_wins) {
        JitValue fresh = jit_and(j, jit_compare(j, JIT_NE, x, x),
                                 jit_compare(j, JIT_EQ, jit_get(value), jit_get(value)));
        better = jit_or(j, better, fresh);
    }
    JitIf s = jit_if(j, better);
    jit_set(j, best, jit_index(&k));
    jit_set(j, value, x);
    jit_end_if(j, &s);
    jit_end_for(j, &k);
    return jit_get(best);
}

static JitValue line_offset(Jit *j, const LossDesc *d, JitValue line)
{
    JitValue inner = jit_i64(j, d->inner);
    JitValue outer = jit_div(j, line, inner);
    JitValue at = jit_muladd_i64(j, outer, d->classes * d->inner, jit_mod(j, line, inner));
    return jit_tmp(j, at);
}

/* logits, labels, workspace: right answers and labels, both i64 */
static void emit_accuracy(Jit *j, const void *desc)
{
    const LossDesc *d = desc;
    const JitTypes *t = jit_types(j);
    JitLoop chunk = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "chunk");
    JitValue next = jit_add(j, jit_index(&chunk), jit_i64(j, 1));
    int64_t lines = d->outer * d->inner;
    Totals s = new_totals(j, t->i64);
    JitLoop line = jit_for(j, part_start(j, jit_index(&chunk), lines, REDUCE_CHUNKS),
                           part_start(j, next, lines, REDUCE_CHUNKS), 1, "line");
    JitValue label = load_label(j, d, jit_index(&line));
    JitIf valid = jit_if(j, is_valid(j, label));
    JitValue best = first_largest(j, p_f32(j, 0), line_offset(j, d, jit_index(&line)), d->classes,
                                  d->inner, false);
    add_to(j, s.count, jit_i64(j, 1));
    JitIf right = jit_if(j, jit_compare(j, JIT_EQ, best, label));
    add_to(j, s.sum, jit_i64(j, 1));
    jit_end_if(j, &right);
    jit_end_if(j, &valid);
    jit_end_for(j, &line);
    store_totals(j, d, jit_index(&chunk), &s, t->i64);
    jit_end_for(j, &chunk);
}

static void emit_accuracy_join(Jit *j, const void *desc)
{
    emit_ratio(j, desc, jit_types(j)->i64);
}

void lower_accuracy(Lowering *l, const Node *n)
{
    lower_chunked(l, n, emit_accuracy, emit_accuracy_join);
}

static int64_t argmax_items(const LossDesc *d)
{
    return items_per_task(d->classes);
}

static void emit_argmax(Jit *j, const void *desc)
{
    const LossDesc *d = desc;
    const JitTypes *t = jit_types(j);
    JitValue first, last;
    task_items(j, argmax_items(d), d->outer * d->inner, &first, &last);
    JitLoop line = jit_for(j, first, last, 1, "line");
    JitValue best = first_largest(j, p_f32(j, 0), line_offset(j, d, jit_index(&line)), d->classes,
                                  d->inner, true);
    jit_store(j, jit_buf(j, 1, t->p_i32), jit_index(&line), jit_cast(j, best, t->i32));
    jit_end_for(j, &line);
}

void lower_argmax(Lowering *l, const Node *n)
{
    AxisShape a = axis_shape(value_type(l->graph, n->in[0]), node_int(n, ATTR_axis, -1));
    LossDesc d = {a.outer, a.length, a.inner, 0, 0, 0, 0};
    const CallBuf bufs[] = {{n->in[0], 0}, {n->out[0], 0}};
    if (value_type(l->graph, n->in[0])->dtype != DTYPE_F32)
        BUG("argmax of %s", dtype_name(value_type(l->graph, n->in[0])->dtype));
    lower_pod_call(l, "argmax", emit_argmax, &d, sizeof d,
                   divide_up(a.outer * a.inner, argmax_items(&d)), bufs, 2);
}
