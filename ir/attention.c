/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/attention.h"

#include "ir/strided_view.h"
#include "ir/support/divide.h"

#include <string.h>

enum {
    BLOCK_ROWS_MOST = 64,
    BLOCK_ROWS_LEAST = 16,       /* the widest vectors */
    CAUSAL_BLOCKS = 8,           /* of a head, unless they had fewer rows than that */
    SCRATCH_FLOATS = 256 * 1024, /* of a thread */
    PARTIAL_SUMS = 64            /* of a line */
};

enum { LIBRARY_UNIT = 8 }; /* elements of bf16 that a library reads at a time */

/* --- tensors --- */

const int64_t attention_by_rows[] = {0, 2, 1, 3};

static char letter_at(const char *letters, int i)
{
    return i >= 0 && i < (int)strlen(letters) ? letters[i] : '\0';
}

char attention_input(const Node *n, int i)
{
    const bool grad = n->op == OP_attention_grad;
    if (grad && i == n->n_in - 1 && node_attr(n, ATTR_library))
        return 'o';
    return letter_at(grad ? "gqkv" : "qkv", i);
}

char attention_result(const Node *n, int i)
{
    return letter_at(n->op == OP_attention_grad ? "QKV" : "o", i);
}

ValueId attention_tensor(const Node *n, char tensor)
{
    for (int i = 0; i < n->n_in; i++)
        if (attention_input(n, i) == tensor)
            return n->in[i];
    for (int i = 0; i < n->n_out; i++)
        if (attention_result(n, i) == tensor)
            return n->out[i];
    return VALUE_NONE;
}

bool attention_lies_by_rows(const Node *n, char tensor)
{
    return tensor && strchr(node_string(n, ATTR_by_rows, ""), tensor);
}

Type attention_turn(Type t)
{
    int64_t second = t.dim[1];
    t.dim[1] = t.dim[2];
    t.dim[2] = second;
    return t;
}

AttentionStrides attention_strides(const Node *n, char tensor, const Type *t, const int64_t *stride)
{
    const bool by_rows = attention_lies_by_rows(n, tensor);
    const int row = by_rows ? 1 : t->rank - 2, head = by_rows ? 2 : t->rank - 3;
    const int batch = by_rows ? 0 : t->rank - 4;
    AttentionStrides s = {.heads = 1, .row = stride[row], .head = t->dim[row] * stride[row]};
    if (head >= 0)
        s.heads = t->dim[head], s.head = stride[head];
    s.batch = batch >= 0 ? stride[batch] : s.heads * s.head;
    return s;
}

static bool is_even(const Type *t, const int64_t *stride, int64_t unit)
{
    for (int d = 0; d + 1 < t->rank; d++)
        if (stride[d] % unit)
            return false;
    for (int d = 0; d < t->rank - 4; d++)
        if (stride[d] != stride[d + 1] * t->dim[d + 1])
            return false;
    return stride[t->rank - 1] == 1;
}

bool attention_takes_strides(const Graph *g, const Node *n, char tensor)
{
    const ValueId v = attention_tensor(n, tensor);
    const bool library = node_attr(n, ATTR_library);
    if (v == VALUE_NONE || !(library || attention_lies_by_rows(n, tensor)))
        return false;
    const Type *t = value_type(g, v);
    const int64_t unit = library ? LIBRARY_UNIT : t->dim[t->rank - 1];
    const StridedView view = value_view(g, v);
    return view.base % unit == 0 && is_even(t, view.stride, unit);
}

/* --- shapes --- */

/* Elements between the biases of neighbours in each batch dim; 0 where they share one. */
static void bias_strides(const Graph *g, const Node *n, AttentionShape *a)
{
    const Type *t = value_type(g, n->in[a->bias]);
    int64_t dense = a->keys;
    for (int d = a->n_batch - 1, i = t->rank - 3; d >= 0; d--, i--) {
        a->bias_batch[d] = i >= 0 && t->dim[i] != 1 ? dense : 0;
        dense *= i >= 0 ? t->dim[i] : 1;
    }
}

static int64_t group_of(const Type *q, const Type *v)
{
    int head = q->rank - 3;
    return head >= 0 && q->dim[head] > v->dim[head] ? q->dim[head] / v->dim[head] : 1;
}

static Type type_by_heads(const Graph *g, const Node *n, char tensor)
{
    const Type *t = value_type(g, attention_tensor(n, tensor));
    return attention_lies_by_rows(n, tensor) ? attention_turn(*t) : *t;
}

AttentionShape attention_shape(const Graph *g, const Node *n)
{
    AttentionShape a = {.bias = -1, .rng = -1, .dout = -1, .max = -1, .sum = -1};
    a.grad = n->op == OP_attention_grad;
    a.q = a.grad ? 1 : 0;
    a.k = a.q + 1, a.v = a.q + 2;
    a.drops = node_attr(n, ATTR_p) != NULL;
    int last = n->n_in - 1, fixed = a.grad ? 6 : 3;
    if (a.grad)
        a.dout = 0, a.max = 4, a.sum = 5;
    if (a.grad && node_attr(n, ATTR_library))
        last--; /* what attention gave */
    if (a.drops)
        a.rng = last--;
    if (last >= fixed)
        a.bias = last;
    const Type types[] = {type_by_heads(g, n, 'q'), type_by_heads(g, n, 'v')};
    const Type *q = &types[0], *v = &types[1];
    a.k_bf16 = value_type(g, n->in[a.k])->dtype == DTYPE_BF16;
    a.v_bf16 = v->dtype == DTYPE_BF16;
    a.n_batch = q->rank - 2;
    a.heads = 1;
    for (int d = 0; d < a.n_batch; d++)
        a.heads *= a.batch[d] = q->dim[d];
    a.group = group_of(q, v);
    a.rows = q->dim[a.n_batch], a.width = q->dim[a.n_batch + 1];
    a.keys = v->dim[a.n_batch], a.value_width = v->dim[a.n_batch + 1];
    if (a.bias >= 0)
        bias_strides(g, n, &a);
    a.causal = node_flag(n, ATTR_causal);
    a.scale = node_float(n, ATTR_scale, 1);
    a.p = node_float(n, ATTR_p, 0);
    a.key = node_int(n, ATTR_key, 0);
    return a;
}

double attention_scores(const AttentionShape *a)
{
    double rows = (double)a->rows, keys = (double)a->keys, heads = (double)a->heads;
    if (!a->causal)
        return heads * rows * keys;
    double short_rows = rows < keys ? rows : keys;
    return heads * (short_rows * (short_rows + 1) / 2 + (rows - short_rows) * keys);
}

static int64_t padded(int64_t n)
{
    return divide_up(n, BLOCK_ROWS_LEAST) * BLOCK_ROWS_LEAST;
}

static bool copies_keys(const AttentionShape *a)
{
    return a->k_bf16 || a->v_bf16 || a->width % BLOCK_ROWS_LEAST ||
           a->value_width % BLOCK_ROWS_LEAST;
}

/* Floats of scratch memory that a block of so many rows takes beside its scores: queries and, in
 * the gradient, gradients of results, each by rows and by columns; partial sums of lines; results;
 * and keys or values that are bf16, or whose rows are no whole vectors. */
static int64_t attention_block_floats(const AttentionShape *a, int64_t rows)
{
    int64_t wide = a->width > a->value_width ? a->width : a->value_width;
    int64_t floats = rows * (padded(a->width) * 2 + PARTIAL_SUMS + padded(wide));
    if (a->grad)
        floats += rows * padded(a->value_width) * 2;
    if (copies_keys(a))
        floats += ATTENTION_CHAIN * padded(wide);
    return floats;
}

static int64_t sums_floats(const AttentionShape *a, bool heads_fit)
{
    int64_t dk = a->keys * a->width, dv = a->keys * a->value_width;
    int64_t chains = a->rows > ATTENTION_CHAIN ? dk + dv : 0, head = a->group > 1 ? dk + dv : 0;
    if (!heads_fit) /* else sums are made in scratch memory */
        head += (a->k_bf16 ? dk : 0) + (a->v_bf16 ? dv : 0);
    return padded(chains + head);
}

AttentionBlocks attention_blocks(const AttentionShape *a)
{
    AttentionBlocks b = {.block_rows = BLOCK_ROWS_MOST};
    int64_t tensors = a->grad ? 2 : 1;
    while (b.block_rows / 2 >= a->rows && b.block_rows > BLOCK_ROWS_LEAST)
        b.block_rows /= 2;
    /* Of the last square of scores, a causal block computes half for nothing. */
    while (a->causal && b.block_rows * CAUSAL_BLOCKS > a->rows && b.block_rows > BLOCK_ROWS_LEAST)
        b.block_rows /= 2;
    while (b.block_rows > BLOCK_ROWS_LEAST &&
           attention_block_floats(a, b.block_rows) + tensors * a->keys * b.block_rows >
               SCRATCH_FLOATS)
        b.block_rows /= 2;
    int64_t scores = tensors * a->keys * b.block_rows;
    int64_t used = attention_block_floats(a, b.block_rows);
    int64_t head = tensors * a->keys * (padded(a->width) + padded(a->value_width));
    if (used + scores > SCRATCH_FLOATS)
        b.scores_floats = scores;
    else
        used += scores;
    b.heads_fit = used + head <= SCRATCH_FLOATS;
    if (a->grad)
        b.sums_floats = sums_floats(a, b.heads_fit);
    int64_t items = a->grad ? a->heads / a->group : a->heads * divide_up(a->rows, b.block_rows);
    b.parts = items;
    if ((b.scores_floats || b.sums_floats) && items > ATTENTION_PARTS)
        b.parts = ATTENTION_PARTS;
    return b;
}
