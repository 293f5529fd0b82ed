/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reference evaluation of attention and its gradient, a row of queries at a time. */
#include "ir/attention.h"
#include "ir/eval_internal.h"

#include <math.h>
#include <string.h>

/* A tensor by its letter. */
typedef struct Operand {
    double *data;
    AttentionStrides at;
} Operand;

/* One row: its head, and what softmax made of its scores. */
typedef struct Row {
    const AttentionShape *a;
    Operand of_q, of_k, of_v;
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

static Operand operand(const EvalState *s, const Node *n, char tensor)
{
    const ValueId v = attention_tensor(n, tensor);
    const Type *t = value_type(s->graph, v);
    int64_t stride[TYPE_MAX_RANK], dense = 1;
    for (int d = t->rank - 1; d >= 0; d--) {
        stride[d] = dense;
        dense *= t->dim[d];
    }
    return (Operand){s->data[v], attention_strides(n, tensor, t, stride)};
}

/* Where the rows of a head begin. */
static double *head_of(const Operand *x, int64_t head)
{
    return x->data + head / x->at.heads * x->at.batch + head % x->at.heads * x->at.head;
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
        double x = dot(r->q, r->k + s * r->of_k.at.row, a->width) * a->scale;
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
            r->factor[s] = (double)dropout_bits(eval_words(rng[0], rng[1]),
                                                eval_words(rng[2], rng[3]), (uint64_t)a->key,
                                                (uint64_t)(line * a->keys + s)) >= a->p * 0x1p32
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
    r->q = head_of(&r->of_q, head) + line % a->rows * r->of_q.at.row;
    r->k = head_of(&r->of_k, of_keys);
    r->v = head_of(&r->of_v, of_keys);
    r->bias = a->bias >= 0 ? eval_in(st, n, a->bias) + bias_offset(a, head) : NULL;
    score_row(r, line % a->rows);
    if (a->grad)
        r->max = eval_in(st, n, a->max)[line], r->sum = eval_in(st, n, a->sum)[line];
    else
        find_statistics(r);
    probabilities(st, n, r, line);
}

static Row row_buffers(const EvalState *s, const Node *n, const AttentionShape *a, Pool *scratch)
{
    size_t keys = (size_t)a->keys;
    return (Row){.a = a,
                 .of_q = operand(s, n, 'q'),
                 .of_k = operand(s, n, 'k'),
                 .of_v = operand(s, n, 'v'),
                 .p = POOL_ARRAY(scratch, keys, double),
                 .kept = POOL_ARRAY(scratch, keys, double),
                 .factor = POOL_ARRAY(scratch, keys, double)};
}

void eval_attention(EvalState *s, const Node *n)
{
    AttentionShape a = attention_shape(s->graph, n);
    Pool *scratch = pool_new();
    Row r = row_buffers(s, n, &a, scratch);
    const Operand o = operand(s, n, 'o');
    for (int64_t line = 0; line < a.heads * a.rows; line++) {
        double *out = head_of(&o, line / a.rows) + line % a.rows * o.at.row;
        make_row(s, n, &r, line);
        memset(out, 0, (size_t)a.value_width * sizeof *out);
        for (int64_t k = 0; k < a.keys; k++)
            for (int64_t e = 0; e < a.value_width && r.kept[k] != 0; e++)
                out[e] += r.kept[k] * r.v[k * r.of_v.at.row + e];
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
        r->factor[s] *= dot(dout, r->v + s * r->of_v.at.row, a->value_width);
        sum += r->factor[s] * r->p[s];
    }
    for (int64_t s = 0; s < a->keys; s++)
        r->p[s] *= (r->factor[s] - sum) * a->scale;
}

void eval_attention_grad(EvalState *s, const Node *n)
{
    AttentionShape a = attention_shape(s->graph, n);
    Pool *scratch = pool_new();
    Row r = row_buffers(s, n, &a, scratch);
    const Operand g = operand(s, n, 'g'), q = operand(s, n, 'Q');
    const Operand k = operand(s, n, 'K'), v = operand(s, n, 'V');
    for (int i = 0; i < 3; i++)
        memset(eval_out(s, n, i), 0, (size_t)eval_out_count(s, n, i) * sizeof(double));
    for (int64_t line = 0; line < a.heads * a.rows; line++) {
        const int64_t head = line / a.rows, row = line % a.rows, of_keys = head / a.group;
        const double *dout = head_of(&g, head) + row * g.at.row;
        double *dq = head_of(&q, head) + row * q.at.row;
        double *dk = head_of(&k, of_keys), *dv = head_of(&v, of_keys);
        make_row(s, n, &r, line);
        for (int64_t i = 0; i < a.keys; i++)
            add_scaled(dv + i * v.at.row, dout, r.kept[i], a.value_width);
        score_gradients(&r, dout);
        for (int64_t i = 0; i < a.keys; i++) {
            add_scaled(dq, r.k + i * r.of_k.at.row, r.p[i], a.width);
            add_scaled(dk + i * k.at.row, r.q, r.p[i], a.width);
        }
    }
    pool_free(scratch);
}
