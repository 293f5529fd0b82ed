/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reference evaluation of attention and its gradient, a row of queries at a time. */
#include "ir/attention.h"
#include "ir/eval_internal.h"

#include <math.h>
#include <string.h>

/* One row: its head, and what softmax made of its scores. */
typedef struct Row {
    const AttentionShape *a;
    const double *q, *k, *v, *bias; /* of the row; of the head */
    double *p, *kept;               /* by key: probabilities, before and after dropout */
    double *factor;                 /* by key: what dropout multiplies by */
    double max, sum;                /* the gradient's are inputs */
} Row;

static double dot(const double *x, const double *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

static int64_t bias_offset(const AttentionShape *a, int64_t head)
{
    int64_t at = 0;
    for (int d = a->n_batch - 1; d >= 0; d--) {
        at += head % a->batch[d] * a->bias_batch[d];
        head /= a->batch[d];
    }
    return at;
}

static void score_row(Row *r, int64_t row)
{
    const AttentionShape *a = r->a;
    for (int64_t s = 0; s < a->keys; s++) {
        double x = dot(r->q, r->k + s * a->width, a->width) * a->scale;
        x = a->causal && s > row ? -(double)INFINITY : x + (r->bias ? r->bias[s] : 0);
        r->p[s] = x;
    }
}

static void find_statistics(Row *r)
{
    r->max = -(double)INFINITY;
    r->sum = 0;
    for (int64_t s = 0; s < r->a->keys; s++)
        r->max = r->max > r->p[s] || isnan(r->max) ? r->max : r->p[s];
    for (int64_t s = 0; s < r->a->keys; s++)
        r->sum += exp(r->p[s] - r->max);
}

static void probabilities(const EvalState *st, const Node *n, Row *r, int64_t line)
{
    const AttentionShape *a = r->a;
    const double *rng = a->drops ? eval_in(st, n, a->rng) : NULL;
    for (int64_t s = 0; s < a->keys; s++) {
        r->p[s] = exp(r->p[s] - r->max) / r->sum;
        r->factor[s] = 1;
        if (rng)
            r->factor[s] =
                (double)rng_bits(eval_words(rng[0], rng[1]), eval_words(rng[2], rng[3]),
                                 (uint64_t)a->key, (uint64_t)(line * a->keys + s)) >= a->p * 0x1p32
                    ? 1 / (1 - a->p)
                    : 0;
        r->kept[s] = r->p[s] * r->factor[s];
    }
}

/* Row `line` of all heads' rows. */
static void make_row(const EvalState *st, const Node *n, Row *r, int64_t line)
{
    const AttentionShape *a = r->a;
    int64_t head = line / a->rows, of_keys = head / a->group;
    r->q = eval_in(st, n, a->q) + line * a->width;
    r->k = eval_in(st, n, a->k) + of_keys * a->keys * a->width;
    r->v = eval_in(st, n, a->v) + of_keys * a->keys * a->value_width;
    r->bias = a->bias >= 0 ? eval_in(st, n, a->bias) + bias_offset(a, head) : NULL;
    score_row(r, line % a->rows);
    if (a->grad)
        r->max = eval_in(st, n, a->max)[line], r->sum = eval_in(st, n, a->sum)[line];
    else
        find_statistics(r);
    probabilities(st, n, r, line);
}

static Row row_buffers(const AttentionShape *a, Pool *scratch)
{
    size_t keys = (size_t)a->keys;
    return (Row){.a = a,
                 .p = POOL_ARRAY(scratch, keys, double),
                 .kept = POOL_ARRAY(scratch, keys, double),
                 .factor = POOL_ARRAY(scratch, keys, double)};
}

void eval_attention(EvalState *s, const Node *n)
{
    AttentionShape a = attention_shape(s->graph, n);
    Pool *scratch = pool_new();
    Row r = row_buffers(&a, scratch);
    for (int64_t line = 0; line < a.heads * a.rows; line++) {
        double *out = eval_out(s, n, 0) + line * a.value_width;
        make_row(s, n, &r, line);
        memset(out, 0, (size_t)a.value_width * sizeof *out);
        for (int64_t k = 0; k < a.keys; k++)
            for (int64_t e = 0; e < a.value_width && r.kept[k] != 0; e++)
                out[e] += r.kept[k] * r.v[k * a.value_width + e];
        eval_out(s, n, 1)[line] = r.max;
        eval_out(s, n, 2)[line] = r.sum;
    }
    pool_free(scratch);
}

/* Adds y * factor to x. */
static void add_scaled(double *x, const double *y, double factor, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] += y[i] * factor;
}

/* The gradients of the row's scores before they were scaled, in place of its probabilities. */
static void score_gradients(Row *r, const double *dout)
{
    const AttentionShape *a = r->a;
    double sum = 0;
    for (int64_t s = 0; s < a->keys; s++) {
        r->factor[s] *= dot(dout, r->v + s * a->value_width, a->value_width);
        sum += r->factor[s] * r->p[s];
    }
    for (int64_t s = 0; s < a->keys; s++)
        r->p[s] *= (r->factor[s] - sum) * a->scale;
}

void eval_attention_grad(EvalState *s, const Node *n)
{
    AttentionShape a = attention_shape(s->graph, n);
    Pool *scratch = pool_new();
    Row r = row_buffers(&a, scratch);
    for (int i = 0; i < 3; i++)
        memset(eval_out(s, n, i), 0, (size_t)eval_out_count(s, n, i) * sizeof(double));
    for (int64_t line = 0; line < a.heads * a.rows; line++) {
        const double *dout = eval_in(s, n, a.dout) + line * a.value_width;
        double *dq = eval_out(s, n, 0) + line * a.width;
        int64_t of_keys = line / a.rows / a.group;
        double *dk = eval_out(s, n, 1) + of_keys * a.keys * a.width;
        double *dv = eval_out(s, n, 2) + of_keys * a.keys * a.value_width;
        make_row(s, n, &r, line);
        for (int64_t k = 0; k < a.keys; k++)
            add_scaled(dv + k * a.value_width, dout, r.kept[k], a.value_width);
        score_gradients(&r, dout);
        for (int64_t k = 0; k < a.keys; k++) {
            add_scaled(dq, r.k + k * a.width, r.p[k], a.width);
            add_scaled(dk + k * a.width, r.q, r.p[k], a.width);
        }
    }
    pool_free(scratch);
}
