/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shapes of attention and its gradient. */
#include "ir/attention.h"
#include "ir/shape_rules.h"

#include <inttypes.h>
#include <string.h>

static bool want_sizes(const Node *node, int64_t length, int64_t width, int operand,
                       ShapeError *err)
{
    if (length < 1 || length > INT32_MAX || width < 1 || width > ATTENTION_WIDTH_MOST)
        return shape_fail(err, "E108", operand,
                          "%s of %" PRId64 " elements for each of %" PRId64
                          " places; at most %d elements, and no more than 2^31 - 1 places",
                          op_name(node->op), width, length, ATTENTION_WIDTH_MOST);
    return true;
}

/* Heads of k, as the last batch dim of *keys, which are those of q: fewer where they divide them.
 */
static bool take_fewer_heads(const Node *node, const Type *k, int operand, Type *keys,
                             ShapeError *err)
{
    int head = k->rank - 3;
    if (head < 0 || k->dim[head] == keys->dim[head])
        return true;
    if (k->dim[head] < 1 || keys->dim[head] % k->dim[head])
        return shape_fail(err, "E101", operand,
                          "%s: %" PRId64 " heads of queries, which %" PRId64
                          " heads of keys do not divide",
                          op_name(node->op), keys->dim[head], k->dim[head]);
    keys->dim[head] = k->dim[head];
    return true;
}

static Type by_heads(const Graph *g, const Node *node, int i)
{
    const Type *t = shape_in(g, node, i);
    return attention_lies_by_rows(node, attention_input(node, i)) ? attention_turn(*t) : *t;
}

/* An input of this type by heads. */
static bool want_lying(const Graph *g, const Node *node, int i, Type t, ShapeError *err)
{
    if (attention_lies_by_rows(node, attention_input(node, i)))
        t = attention_turn(t);
    return want_type(g, node, i, &t, err);
}

/* Letters of what the node has, and four dims. */
static bool want_by_rows(const Graph *g, const Node *node, ShapeError *err)
{
    const char *letters = node_string(node, ATTR_by_rows, NULL);
    const char *known = node->op == OP_attention_grad ? "qkvogQKV" : "qkvo";
    bool fits = letters && letters[0] && letters[strspn(letters, known)] == '\0';
    for (int i = 0; fits && i < node->n_in; i++)
        fits = !attention_input(node, i) || shape_in(g, node, i)->rank == 4;
    return !letters || fits ||
           shape_fail(err, "E105", -1,
                      "%s: by_rows names no tensors of four dims that it reads or writes",
                      op_name(node->op));
}

/* q[..,H,T,D], k[..,G,S,D], v[..,G,S,E] from input `first` on, each f32 or bf16, G a divisor of H;
 * *result is [..,H,T,E], bf16 where one of them is. */
static bool want_heads(const Graph *g, const Node *node, int first, Type *result, ShapeError *err)
{
    for (int i = first; i < first + 3; i++)
        if (!want_float(g, node, i, err) || !want_rank(g, node, i, 2, TYPE_MAX_RANK, err))
            return false;
    if (!want_by_rows(g, node, err))
        return false;
    Type q = by_heads(g, node, first), k = by_heads(g, node, first + 1);
    Type v = by_heads(g, node, first + 2), keys = q, values = k;
    int last = q.rank - 1;
    if (!want_sizes(node, q.dim[last - 1], q.dim[last], first, err) ||
        !want_rank(g, node, first + 1, q.rank, q.rank, err) ||
        !want_rank(g, node, first + 2, q.rank, q.rank, err) ||
        !want_sizes(node, k.dim[last - 1], v.dim[last], first + 2, err) ||
        !take_fewer_heads(node, &k, first + 1, &keys, err))
        return false;
    keys.dim[last - 1] = k.dim[last - 1];
    values.dim[last] = v.dim[last];
    keys.dtype = k.dtype;
    values.dtype = v.dtype;
    *result = q;
    result->dim[last] = v.dim[last];
    result->dtype = real_result(real_result(q.dtype, k.dtype), v.dtype);
    return want_lying(g, node, first + 1, keys, err) && want_lying(g, node, first + 2, values, err);
}

/* A number for every row. */
static Type row_numbers(Type t)
{
    t.dtype = DTYPE_F32;
    t.dim[--t.rank] = 0;
    return t;
}

/* Numbers for keys, the same for every row. */
static bool want_bias(const Graph *g, const Node *node, int i, const Type *q, int64_t keys,
                      ShapeError *err)
{
    const Type *t = shape_in(g, node, i);
    bool fits = t->rank >= 1 && t->rank <= q->rank && t->dim[t->rank - 1] == keys;
    for (int d = t->rank - 2, e = q->rank - 2; fits && d >= 0; d--, e--)
        fits = t->dim[d] == 1 || (e < q->rank - 2 && t->dim[d] == q->dim[e]);
    if (!want_float(g, node, i, err))
        return false;
    return fits ||
           shape_fail(err, "E101", i, "%s: a bias %s is no number for each of %" PRId64 " keys",
                      op_name(node->op), SHOW(t), keys);
}

/* Inputs from `first` up to `end`: bias?, rng? */
static bool want_optional(const Graph *g, const Node *node, int first, int end, const Type *q,
                          ShapeError *err)
{
    const int64_t four = 4;
    const Type rng = type_make(DTYPE_I32, 1, &four);
    double p = node_float(node, ATTR_p, 0.0);
    int random = node_attr(node, ATTR_p) ? 1 : 0, bias = end - first - random;
    int64_t keys = by_heads(g, node, first == 3 ? 1 : 2).dim[q->rank - 2];
    if (!(p >= 0.0 && p < 1.0))
        return shape_fail(err, "E105", -1, "%s: p = %g is not in 0 <= p < 1", op_name(node->op), p);
    if (bias < 0 || bias > 1)
        return shape_fail(err, "E109", -1, "%s: %d inputs %s p", op_name(node->op), node->n_in,
                          random ? "with" : "without");
    return (!bias || want_bias(g, node, first, q, keys, err)) &&
           (!random || want_type(g, node, end - 1, &rng, err));
}

SHAPE_RULE(attention)
{
    if (!want_heads(g, node, 0, &out[0], err))
        return false;
    const Type q = by_heads(g, node, 0);
    out[1] = out[2] = row_numbers(q);
    if (attention_lies_by_rows(node, 'o'))
        out[0] = attention_turn(out[0]);
    return want_optional(g, node, 3, node->n_in, &q, err);
}

SHAPE_RULE(attention_grad)
{
    Type dout;
    if (!want_float(g, node, 0, err) || !want_heads(g, node, 1, &dout, err))
        return false;
    const Type q = by_heads(g, node, 1), rows = row_numbers(q);
    int reads = node_attr(node, ATTR_library) ? 1 : 0;
    for (int i = 0; i < 3; i++) {
        out[i] = by_heads(g, node, 1 + i);
        if (attention_lies_by_rows(node, attention_result(node, i)))
            out[i] = attention_turn(out[i]);
    }
    return want_lying(g, node, 0, dout, err) && want_type(g, node, 4, &rows, err) &&
           want_type(g, node, 5, &rows, err) &&
           (!reads || want_lying(g, node, node->n_in - 1, dout, err)) &&
           want_optional(g, node, 6, node->n_in - reads, &q, err);
}
