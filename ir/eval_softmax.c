/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reference evaluation of softmax and what stands on it.  Every exponential is of a value minus
 * the largest of its line, so nothing overflows; a NaN reaches its whole line, as in PyTorch. */
#include "ir/eval_internal.h"

#include <math.h>
#include <string.h>

/* One line of values along an axis: element k at data[k * step]. */
typedef struct Line {
    const double *data;
    int64_t length, step;
} Line;

static double line_max(Line l)
{
    double max = -(double)INFINITY;
    for (int64_t k = 0; k < l.length; k++)
        max = max > l.data[k * l.step] || isnan(max) ? max : l.data[k * l.step];
    return max;
}

/* log(sum(exp(x))) = max + log(sum(exp(x - max))) */
static double line_log_sum_exp(Line l)
{
    double max = line_max(l), sum = 0;
    for (int64_t k = 0; k < l.length; k++)
        sum += exp(l.data[k * l.step] - max);
    return max + log(sum);
}

/* Line number `i` of input `input`, and its first offset. */
static Line line_at(const EvalState *s, const Node *n, int input, EvalAxis a, int64_t i,
                    int64_t *offset)
{
    *offset = i / a.inner * a.length * a.inner + i % a.inner;
    Line l = {eval_in(s, n, input) + *offset, a.length, a.inner};
    return l;
}

static EvalAxis axis_of(const EvalState *s, const Node *n)
{
    return eval_axis(eval_in_type(s, n, 0), n, -1);
}

void eval_softmax(EvalState *s, const Node *n)
{
    EvalAxis a = axis_of(s, n);
    for (int64_t i = 0, at; i < a.outer * a.inner; i++) {
        Line l = line_at(s, n, 0, a, i, &at);
        double max = line_max(l), sum = 0, *y = eval_out(s, n, 0) + at;
        for (int64_t k = 0; k < l.length; k++)
            sum += y[k * l.step] = exp(l.data[k * l.step] - max);
        for (int64_t k = 0; k < l.length; k++)
            y[k * l.step] /= sum;
    }
}

void eval_log_softmax(EvalState *s, const Node *n)
{
    EvalAxis a = axis_of(s, n);
    for (int64_t i = 0, at; i < a.outer * a.inner; i++) {
        Line l = line_at(s, n, 0, a, i, &at);
        double max = line_max(l), log_sum = 0;
        for (int64_t k = 0; k < l.length; k++)
            log_sum += exp(l.data[k * l.step] - max);
        log_sum = log(log_sum);
        for (int64_t k = 0; k < l.length; k++)
            eval_out(s, n, 0)[at + k * l.step] = l.data[k * l.step] - max - log_sum;
    }
}

/* (dy, y) -> y * (dy - sum(dy * y)) */
void eval_softmax_grad(EvalState *s, const Node *n)
{
    EvalAxis a = axis_of(s, n);
    for (int64_t i = 0, at; i < a.outer * a.inner; i++) {
        Line dy = line_at(s, n, 0, a, i, &at), y = line_at(s, n, 1, a, i, &at);
        double sum = 0;
        for (int64_t k = 0; k < y.length; k++)
            sum += dy.data[k * y.step] * y.data[k * y.step];
        for (int64_t k = 0; k < y.length; k++)
            eval_out(s, n, 0)[at + k * y.step] = y.data[k * y.step] * (dy.data[k * y.step] - sum);
    }
}

/* (dy, y) -> dy - exp(y) * sum(dy) */
void eval_log_softmax_grad(EvalState *s, const Node *n)
{
    EvalAxis a = axis_of(s, n);
    for (int64_t i = 0, at; i < a.outer * a.inner; i++) {
        Line dy = line_at(s, n, 0, a, i, &at), y = line_at(s, n, 1, a, i, &at);
        double sum = 0;
        for (int64_t k = 0; k < y.length; k++)
            sum += dy.data[k * y.step];
        for (int64_t k = 0; k < y.length; k++)
            eval_out(s, n, 0)[at + k * y.step] =
                dy.data[k * y.step] - exp(y.data[k * y.step]) * sum;
    }
}

/* The label of line i, or -1 when it is ignored. */
static int64_t label_at(const EvalState *s, const Node *n, int64_t i, int64_t classes)
{
    int64_t label = (int64_t)eval_in(s, n, 1)[i];
    if (label == node_int(n, ATTR_ignore_index, -100))
        return -1;
    if (label < 0 || label >= classes)
        BUG("evaluator: label %lld is not one of %lld classes", (long long)label,
            (long long)classes);
    return label;
}

static int64_t count_labels(const EvalState *s, const Node *n, EvalAxis a)
{
    int64_t count = 0;
    for (int64_t i = 0; i < a.outer * a.inner; i++)
        count += label_at(s, n, i, a.length) >= 0;
    return count;
}

/* Weight of class k: input i, 1 without it. */
static double class_weight(const EvalState *s, const Node *n, int i, int64_t k)
{
    return n->n_in > i ? eval_in(s, n, i)[k] : 1;
}

static double label_weights(const EvalState *s, const Node *n, EvalAxis a, int i)
{
    double sum = 0;
    for (int64_t k = 0; k < a.outer * a.inner; k++) {
        int64_t label = label_at(s, n, k, a.length);
        sum += label < 0 ? 0 : class_weight(s, n, i, label);
    }
    return sum;
}

static bool reduction_is(const Node *n, const char *name)
{
    return strcmp(node_string(n, ATTR_reduction, "mean"), name) == 0;
}

/* (logits, labels, weights?) -> (1-e) w[label] * -log p[label] + e * mean over classes of w * -log
 * p, e being the label smoothing; each, their sum, or their sum by that of the weights of the
 * labels (torch.nn.CrossEntropyLoss). */
void eval_cross_entropy(EvalState *s, const Node *n)
{
    EvalAxis a = axis_of(s, n);
    double smoothing = node_float(n, ATTR_smoothing, 0), sum = 0, *out = eval_out(s, n, 0);
    for (int64_t i = 0, at; i < a.outer * a.inner; i++) {
        Line l = line_at(s, n, 0, a, i, &at);
        int64_t label = label_at(s, n, i, a.length);
        double log_sum = line_log_sum_exp(l), all = 0, loss = 0;
        for (int64_t k = 0; k < l.length && smoothing > 0; k++)
            all += class_weight(s, n, 2, k) * (log_sum - l.data[k * l.step]) / (double)l.length;
        if (label >= 0)
            loss = (1 - smoothing) * class_weight(s, n, 2, label) *
                       (log_sum - l.data[label * l.step]) +
                   smoothing * all;
        sum += loss;
        if (reduction_is(n, "none"))
            out[i] = loss;
    }
    double total = reduction_is(n, "sum") ? 1 : label_weights(s, n, a, 2);
    if (!reduction_is(n, "none"))
        out[0] = total > 0 ? sum / total : 0;
}

/* (logits, labels, dloss, weights?) -> dloss / total * (w' softmax - (1-e) w[label] * onehot - e w
 * / classes), where w' = (1-e) w[label] + e mean(w) */
void eval_cross_entropy_grad(EvalState *s, const Node *n)
{
    EvalAxis a = axis_of(s, n);
    double e = node_float(n, ATTR_smoothing, 0), mean = 0;
    double total = reduction_is(n, "mean") ? label_weights(s, n, a, 3) : 1;
    for (int64_t k = 0; k < a.length; k++)
        mean += class_weight(s, n, 3, k) / (double)a.length;
    for (int64_t i = 0, at; i < a.outer * a.inner; i++) {
        Line l = line_at(s, n, 0, a, i, &at);
        double *dx = eval_out(s, n, 0) + at, log_sum = line_log_sum_exp(l);
        int64_t label = label_at(s, n, i, a.length);
        double scale = total > 0 ? eval_in(s, n, 2)[reduction_is(n, "none") ? i : 0] / total : 0;
        double own = label < 0 ? 0 : class_weight(s, n, 3, label) * (1 - e);
        for (int64_t k = 0; k < l.length; k++) {
            double target =
                (k == label ? own : 0) + e * class_weight(s, n, 3, k) / (double)l.length;
            double p = exp(l.data[k * l.step] - log_sum);
            dx[k * l.step] = label < 0 ? 0 : scale * ((own + e * mean) * p - target);
        }
    }
}

/* (logits, labels) -> part of the labels, ignored ones left out, whose logit is the first largest
 */
void eval_accuracy(EvalState *s, const Node *n)
{
    EvalAxis a = axis_of(s, n);
    int64_t count = count_labels(s, n, a), right = 0;
    for (int64_t i = 0, at; i < a.outer * a.inner; i++) {
        Line l = line_at(s, n, 0, a, i, &at);
        int64_t best = 0;
        for (int64_t k = 1; k < l.length; k++)
            if (l.data[k * l.step] > l.data[best * l.step])
                best = k;
        right += label_at(s, n, i, a.length) == best;
    }
    bool sum = strcmp(node_string(n, ATTR_reduction, "mean"), "sum") == 0;
    eval_out(s, n, 0)[0] = sum ? (double)right : count ? (double)right / (double)count : 0;
}
