/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reference evaluation of constants and of operations that only move data. */
#include "ir/eval_internal.h"

#include <string.h>

static void fill(EvalState *s, const Node *n, double value)
{
    for (int64_t i = 0, end = eval_out_count(s, n, 0); i < end; i++)
        eval_out(s, n, 0)[i] = value;
}

void eval_const(EvalState *s, const Node *n)
{
    fill(s, n, node_float(n, ATTR_value, 0));
}

void eval_literal(EvalState *s, const Node *n)
{
    int count;
    const double *values = node_floats(n, ATTR_values, &count);
    memcpy(eval_out(s, n, 0), values, (size_t)count * sizeof *values);
}

/* 0, 1, 2, ... along the axis (the last when absent). */
void eval_iota(EvalState *s, const Node *n)
{
    const Type *t = eval_out_type(s, n, 0);
    if (t->rank == 0) {
        fill(s, n, 0);
        return;
    }
    EvalAxis a = eval_axis(t, n, -1);
    for (int64_t i = 0, end = eval_out_count(s, n, 0); i < end; i++)
        eval_out(s, n, 0)[i] = (double)(i / a.inner % a.length);
}

/* out[walk order] = in[walk.at[0]] */
static void gather(EvalState *s, const Node *n, EvalWalk w)
{
    for (int64_t i = 0, end = eval_out_count(s, n, 0); i < end; i++, eval_walk_next(&w))
        eval_out(s, n, 0)[i] = eval_in(s, n, 0)[w.at[0]];
}

void eval_transpose(EvalState *s, const Node *n)
{
    const Type *in = eval_in_type(s, n, 0);
    int64_t own[TYPE_MAX_RANK], stride[TYPE_MAX_RANK];
    eval_strides(in, own);
    for (int i = 0; i < in->rank; i++)
        stride[i] = own[node_ints_at(n, ATTR_perm, i, in->rank - 1 - i)];
    EvalWalk w = eval_walk(eval_out_type(s, n, 0));
    eval_walk_strided(&w, stride, 0);
    gather(s, n, w);
}

void eval_broadcast(EvalState *s, const Node *n)
{
    EvalWalk w = eval_walk(eval_out_type(s, n, 0));
    eval_walk_broadcast(&w, eval_in_type(s, n, 0));
    gather(s, n, w);
}

void eval_slice(EvalState *s, const Node *n)
{
    const Type *in = eval_in_type(s, n, 0);
    int64_t own[TYPE_MAX_RANK], stride[TYPE_MAX_RANK], first = 0;
    eval_strides(in, own);
    for (int i = 0; i < in->rank; i++) {
        stride[i] = own[i] * node_ints_at(n, ATTR_step, i, 1);
        first += own[i] * node_ints_at(n, ATTR_start, i, 0);
    }
    EvalWalk w = eval_walk(eval_out_type(s, n, 0));
    eval_walk_strided(&w, stride, first);
    gather(s, n, w);
}

/* Writes input `input` into the output, its first element at offset `first`. */
static void scatter(EvalState *s, const Node *n, int input, int64_t first)
{
    int64_t stride[TYPE_MAX_RANK];
    eval_strides(eval_out_type(s, n, 0), stride);
    EvalWalk w = eval_walk(eval_in_type(s, n, input));
    eval_walk_strided(&w, stride, first);
    for (int64_t i = 0; i < eval_in_count(s, n, input); i++, eval_walk_next(&w))
        eval_out(s, n, 0)[w.at[0]] = eval_in(s, n, input)[i];
}

void eval_concat(EvalState *s, const Node *n)
{
    const Type *out = eval_out_type(s, n, 0);
    EvalAxis whole = eval_axis(out, n, 0);
    int64_t first = 0;
    for (int i = 0; i < n->n_in; i++) {
        scatter(s, n, i, first);
        first += eval_axis(eval_in_type(s, n, i), n, 0).length * whole.inner;
    }
}

void eval_pad(EvalState *s, const Node *n)
{
    int64_t stride[TYPE_MAX_RANK], first = 0;
    eval_strides(eval_out_type(s, n, 0), stride);
    for (int i = 0; i < eval_out_type(s, n, 0)->rank; i++)
        first += stride[i] * node_ints_at(n, ATTR_lo, i, 0);
    fill(s, n, node_float(n, ATTR_value, 0));
    scatter(s, n, 0, first);
}

static int64_t row_index(double id, int64_t rows)
{
    if (id < 0 || id >= (double)rows)
        BUG("evaluator: index %g into an embedding of %lld rows", id, (long long)rows);
    return (int64_t)id;
}

/* (ids, w[V, C]) -> [.., C] */
void eval_embedding(EvalState *s, const Node *n)
{
    const Type *w = eval_in_type(s, n, 1);
    int64_t width = w->dim[1];
    for (int64_t i = 0, end = eval_in_count(s, n, 0); i < end; i++)
        memcpy(eval_out(s, n, 0) + i * width,
               eval_in(s, n, 1) + row_index(eval_in(s, n, 0)[i], w->dim[0]) * width,
               (size_t)width * sizeof(double));
}

/* (ids, dy, dw so far?) -> dw[V, C]: rows added up in the order of the ids */
void eval_embedding_grad(EvalState *s, const Node *n)
{
    const Type *w = eval_out_type(s, n, 0);
    int64_t width = w->dim[1];
    if (n->n_in > 2)
        memcpy(eval_out(s, n, 0), eval_in(s, n, 2), (size_t)type_elements(w) * sizeof(double));
    else
        fill(s, n, 0);
    for (int64_t i = 0, end = eval_in_count(s, n, 0); i < end; i++) {
        double *row = eval_out(s, n, 0) + row_index(eval_in(s, n, 0)[i], w->dim[0]) * width;
        for (int64_t j = 0; j < width; j++)
            row[j] += eval_in(s, n, 1)[i * width + j];
    }
}
