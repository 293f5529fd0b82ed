/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reference evaluation of batch norm and layer norm. */
#include "ir/eval_internal.h"

#include <math.h>
#include <string.h>

/* Around the channel axis, 1 unless the axis attribute says. */
static EvalAxis channels(const EvalState *s, const Node *n)
{
    return eval_axis(eval_in_type(s, n, 0), n, 1);
}

static int64_t channel_of(EvalAxis a, int64_t element)
{
    return element / a.inner % a.length;
}

/* 1 / sqrt(var + eps) */
static double rstd_of(const Node *n, double variance)
{
    return 1 / sqrt(variance + node_float(n, ATTR_eps, 1e-5));
}

/* x -> mean[C], biased var[C] */
void eval_bn_stats(EvalState *s, const Node *n)
{
    EvalAxis a = channels(s, n);
    const double *x = eval_in(s, n, 0);
    double *mean = eval_out(s, n, 0), *var = eval_out(s, n, 1);
    int64_t elements = eval_in_count(s, n, 0);
    double count = (double)(a.outer * a.inner);
    for (int64_t c = 0; c < a.length; c++)
        mean[c] = var[c] = 0;
    /* Divided once: the mean of equal numbers is that number, their variance 0. */
    for (int64_t i = 0; i < elements; i++)
        mean[channel_of(a, i)] += x[i];
    for (int64_t c = 0; c < a.length; c++)
        mean[c] /= count;
    for (int64_t i = 0; i < elements; i++) {
        double d = x[i] - mean[channel_of(a, i)];
        var[channel_of(a, i)] += d * d / count;
    }
}

/* (x, mean, var, gamma, beta) -> (x - mean) / sqrt(var + eps) * gamma + beta */
void eval_bn_apply(EvalState *s, const Node *n)
{
    EvalAxis a = channels(s, n);
    const double *x = eval_in(s, n, 0), *mean = eval_in(s, n, 1), *var = eval_in(s, n, 2);
    const double *gamma = eval_in(s, n, 3), *beta = eval_in(s, n, 4);
    for (int64_t i = 0, end = eval_in_count(s, n, 0); i < end; i++) {
        int64_t c = channel_of(a, i);
        eval_out(s, n, 0)[i] = (x[i] - mean[c]) * rstd_of(n, var[c]) * gamma[c] + beta[c];
    }
}

/* (dy, x, mean, var) -> dgamma[C] = sum dy * xhat, dbeta[C] = sum dy */
void eval_bn_grad_sums(EvalState *s, const Node *n)
{
    EvalAxis a = channels(s, n);
    const double *dy = eval_in(s, n, 0), *x = eval_in(s, n, 1);
    const double *mean = eval_in(s, n, 2), *var = eval_in(s, n, 3);
    double *dgamma = eval_out(s, n, 0), *dbeta = eval_out(s, n, 1);
    for (int64_t c = 0; c < a.length; c++)
        dgamma[c] = dbeta[c] = 0;
    for (int64_t i = 0, end = eval_in_count(s, n, 0); i < end; i++) {
        int64_t c = channel_of(a, i);
        dgamma[c] += dy[i] * (x[i] - mean[c]) * rstd_of(n, var[c]);
        dbeta[c] += dy[i];
    }
}

/* (dy, x, mean, var, gamma, dgamma, dbeta) -> dx of batch norm in training: with m elements a
 * channel, gamma * rstd * (dy - dbeta/m - xhat * dgamma/m) (Ioffe and Szegedy 2015, section 3). */
void eval_bn_grad_x(EvalState *s, const Node *n)
{
    EvalAxis a = channels(s, n);
    const double *dy = eval_in(s, n, 0), *x = eval_in(s, n, 1), *mean = eval_in(s, n, 2);
    const double *gamma = eval_in(s, n, 4), *dgamma = eval_in(s, n, 5), *dbeta = eval_in(s, n, 6);
    double count = (double)(a.outer * a.inner);
    for (int64_t i = 0, end = eval_in_count(s, n, 0); i < end; i++) {
        int64_t c = channel_of(a, i);
        double rstd = rstd_of(n, eval_in(s, n, 3)[c]);
        double xhat = (x[i] - mean[c]) * rstd;
        eval_out(s, n, 0)[i] =
            gamma[c] * rstd * (dy[i] - dbeta[c] / count - xhat * dgamma[c] / count);
    }
}

void eval_bn_running(EvalState *s, const Node *n)
{
    double momentum = node_float(n, ATTR_momentum, 0.1), scale = node_float(n, ATTR_scale, 1);
    const double *running = eval_in(s, n, 0), *statistic = eval_in(s, n, 1);
    for (int64_t i = 0, end = eval_out_count(s, n, 0); i < end; i++)
        eval_out(s, n, 0)[i] = (1 - momentum) * running[i] + momentum * scale * statistic[i];
}

/* (x, gamma?, beta?) -> y, mean[rows], rstd[rows] */
void eval_layernorm(EvalState *s, const Node *n)
{
    EvalAxis a = eval_axis(eval_in_type(s, n, 0), n, -1);
    double length = (double)a.length;
    for (int64_t r = 0; r < a.outer; r++) {
        const double *x = eval_in(s, n, 0) + r * a.length;
        double *y = eval_out(s, n, 0) + r * a.length, mean = 0, var = 0;
        for (int64_t i = 0; i < a.length && !node_flag(n, ATTR_rms); i++)
            mean += x[i] / length;
        for (int64_t i = 0; i < a.length; i++)
            var += (x[i] - mean) * (x[i] - mean) / length;
        double rstd = rstd_of(n, var);
        for (int64_t i = 0; i < a.length; i++) {
            y[i] = (x[i] - mean) * rstd;
            if (n->n_in > 1)
                y[i] *= eval_in(s, n, 1)[i];
            if (n->n_in > 2)
                y[i] += eval_in(s, n, 2)[i];
        }
        eval_out(s, n, 1)[r] = mean;
        eval_out(s, n, 2)[r] = rstd;
    }
}

/* (dy, x, mean, rstd, gamma?) -> dx = rstd * (g - mean(g) - xhat * mean(g * xhat)), g = dy * gamma
 * (Ba, Kiros and Hinton 2016); without mean(g) where no mean was subtracted */
void eval_layernorm_grad(EvalState *s, const Node *n)
{
    EvalAxis a = eval_axis(eval_in_type(s, n, 0), n, -1);
    double length = (double)a.length;
    for (int64_t r = 0; r < a.outer; r++) {
        const double *dy = eval_in(s, n, 0) + r * a.length, *x = eval_in(s, n, 1) + r * a.length;
        double mean = eval_in(s, n, 2)[r], rstd = eval_in(s, n, 3)[r];
        double mean_g = 0, mean_gx = 0, *dx = eval_out(s, n, 0) + r * a.length;
        for (int64_t i = 0; i < a.length; i++) {
            dx[i] = n->n_in > 4 ? dy[i] * eval_in(s, n, 4)[i] : dy[i];
            mean_g += node_flag(n, ATTR_rms) ? 0 : dx[i] / length;
            mean_gx += dx[i] * (x[i] - mean) * rstd / length;
        }
        for (int64_t i = 0; i < a.length; i++)
            dx[i] = rstd * (dx[i] - mean_g - (x[i] - mean) * rstd * mean_gx);
    }
}

/* (dy, x, mean, rstd) -> dgamma = sum over rows of dy * xhat, dbeta = sum of dy */
void eval_layernorm_grad_sums(EvalState *s, const Node *n)
{
    EvalAxis a = eval_axis(eval_in_type(s, n, 0), n, -1);
    double *dgamma = eval_out(s, n, 0), *dbeta = eval_out(s, n, 1);
    memset(dgamma, 0, (size_t)a.length * sizeof *dgamma);
    memset(dbeta, 0, (size_t)a.length * sizeof *dbeta);
    for (int64_t i = 0, end = eval_in_count(s, n, 0); i < end; i++) {
        int64_t row = i / a.length, column = i % a.length;
        double xhat = (eval_in(s, n, 1)[i] - eval_in(s, n, 2)[row]) * eval_in(s, n, 3)[row];
        dgamma[column] += eval_in(s, n, 0)[i] * xhat;
        dbeta[column] += eval_in(s, n, 0)[i];
    }
}

/* Local response normalisation: s[c] = k + alpha * (sum of squares of the window around c). */
typedef struct Lrn {
    EvalAxis axis;
    int64_t window;
    double alpha, beta, k;
} Lrn;

static Lrn lrn_of(const EvalState *s, const Node *n)
{
    Lrn r = {.axis = eval_axis(eval_in_type(s, n, 0), n, 1),
             .window = node_int(n, ATTR_window, 5),
             .alpha = node_float(n, ATTR_alpha, 1),
             .beta = node_float(n, ATTR_beta, 0.75),
             .k = node_float(n, ATTR_k, 1)};
    return r;
}

/* The channels there are of middle - before .. middle + after. */
typedef struct LrnSpan {
    int64_t first, last;
} LrnSpan;

static LrnSpan lrn_span(const Lrn *r, int64_t middle, int64_t before, int64_t after)
{
    LrnSpan a = {middle > before ? middle - before : 0, middle + after};
    if (a.last >= r->axis.length)
        a.last = r->axis.length - 1;
    return a;
}

/* Element i of x seen as [outer, channels, inner]. */
static double lrn_normaliser(const Lrn *r, const double *x, int64_t i)
{
    int64_t inner = r->axis.inner, middle = i / inner % r->axis.length;
    LrnSpan a = lrn_span(r, middle, r->window / 2, (r->window - 1) / 2);
    double sum = 0;
    for (int64_t c = a.first; c <= a.last; c++)
        sum += x[i + (c - middle) * inner] * x[i + (c - middle) * inner];
    return r->k + r->alpha * sum;
}

void eval_lrn(EvalState *s, const Node *n)
{
    Lrn r = lrn_of(s, n);
    const double *x = eval_in(s, n, 0);
    for (int64_t i = 0, end = eval_out_count(s, n, 0); i < end; i++)
        eval_out(s, n, 0)[i] = x[i] / pow(lrn_normaliser(&r, x, i), r.beta);
}

/* (dy, x) -> dx: x[i] enters y[i], and the normaliser of every window that it belongs to. */
void eval_lrn_grad(EvalState *s, const Node *n)
{
    Lrn r = lrn_of(s, n);
    const double *dy = eval_in(s, n, 0), *x = eval_in(s, n, 1);
    for (int64_t i = 0, end = eval_out_count(s, n, 0); i < end; i++) {
        int64_t inner = r.axis.inner, own = i / inner % r.axis.length;
        double dx = dy[i] / pow(lrn_normaliser(&r, x, i), r.beta);
        LrnSpan a = lrn_span(&r, own, (r.window - 1) / 2, r.window / 2);
        for (int64_t c = a.first; c <= a.last; c++) {
            int64_t at = i + (c - own) * inner;
            dx -= 2 * r.alpha * r.beta * x[i] * dy[at] * x[at] /
                  pow(lrn_normaliser(&r, x, at), r.beta + 1);
        }
        eval_out(s, n, 0)[i] = dx;
    }
}
