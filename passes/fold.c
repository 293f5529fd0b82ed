/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Local simplifications that leave every bit of the result unchanged: identities, compositions of
 * views and transpositions, arithmetic on constants. */
#include "passes/pass.h"
#include "passes/rewrite.h"

#include <math.h>
#include <string.h>

/* A constant, or a tensor of equal elements. */
static bool is_const(const Graph *g, ValueId v, double wanted)
{
    double c;
    const Node *n = value_node(g, v);
    if (n->op == OP_full)
        return node_float(n, ATTR_value, 0) == wanted;
    return const_value(g, v, &c) && c == wanted;
}

/* x when the result is x itself (same type, so no broadcasting is lost). */
static ValueId same_type_or_none(const Graph *g, const Node *n, ValueId x)
{
    return type_equal(value_type(g, x), value_type(g, n->out[0])) ? x : VALUE_NONE;
}

/* Not x + 0 on the left of a sum with -0: (-0) + 0 is +0, which compares equal; skipped for
 * exactness. */
static ValueId fold_arithmetic(const Graph *g, const Node *n)
{
    ValueId a = n->in[0], b = n->in[1], kept = VALUE_NONE;
    if (is_const(g, b, n->op == OP_sub ? 0.0 : 1.0))
        kept = same_type_or_none(g, n, a);
    if (kept == VALUE_NONE && n->op == OP_mul && is_const(g, a, 1.0))
        kept = same_type_or_none(g, n, b);
    return kept;
}

static bool const_result(OpKind op, double a, double b, double *out)
{
    /* In float, as the compiled code would. */
    float x = (float)a, y = (float)b;
    if (op == OP_add)
        *out = (double)(x + y);
    else if (op == OP_sub)
        *out = (double)(x - y);
    else if (op == OP_mul)
        *out = (double)(x * y);
    else if (op == OP_div)
        *out = (double)(x / y);
    else if (op == OP_neg)
        *out = -a;
    else if (op == OP_sqrt)
        *out = (double)sqrtf(x);
    else
        return false;
    return true;
}

static ValueId fold_constants(Graph *g, const Node *n)
{
    double a = 0, b = 0, result;
    DType dtype = value_type(g, n->out[0])->dtype;
    if (dtype != DTYPE_F32 || n->n_in < 1 || n->n_in > 2 || !const_value(g, n->in[0], &a) ||
        (n->n_in == 2 && !const_value(g, n->in[1], &b)) || !const_result(n->op, a, b, &result))
        return VALUE_NONE;
    return graph_add_const(g, result, dtype);
}

static ValueId add_reshape(Graph *g, ValueId x, const Type *to, Loc loc)
{
    if (type_same_shape(value_type(g, x), to))
        return x;
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_shape, to->dim, to->rank);
    return graph_add(g, OP_reshape, &x, 1, &attrs, NULL, loc);
}

/* reshape(reshape(x)) = reshape(x); reshape to the same shape = x. */
static ValueId fold_reshape(Graph *g, const Node *n)
{
    ValueId x = n->in[0];
    Type to = *value_type(g, n->out[0]);
    if (type_same_shape(value_type(g, x), &to))
        return x;
    const Node *inner = value_node(g, x);
    return inner->op == OP_reshape ? add_reshape(g, inner->in[0], &to, n->loc) : VALUE_NONE;
}

/* A transposition that moves only axes of size 1 keeps the elements in their order. */
static bool moves_nothing(const Type *in, const int64_t *perm, int rank)
{
    int64_t last = -1;
    for (int i = 0; i < rank; i++) {
        if (in->dim[perm[i]] == 1)
            continue;
        if (perm[i] < last)
            return false;
        last = perm[i];
    }
    return true;
}

/* transpose(x), or what has its elements at less cost. */
static ValueId add_transpose(Graph *g, ValueId x, const int64_t *perm, int rank, Loc loc)
{
    const Type *from = value_type(g, x);
    Type to = *from;
    for (int i = 0; i < rank; i++)
        to.dim[i] = from->dim[perm[i]];
    if (moves_nothing(from, perm, rank))
        return add_reshape(g, x, &to, loc);
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_perm, perm, rank);
    return graph_add(g, OP_transpose, &x, 1, &attrs, NULL, loc);
}

static ValueId fold_transpose(Graph *g, const Node *n)
{
    int rank;
    const int64_t *perm = node_ints(n, ATTR_perm, &rank);
    const Node *inner = value_node(g, n->in[0]);
    if (inner->op != OP_transpose)
        return moves_nothing(value_type(g, n->in[0]), perm, rank)
                   ? add_transpose(g, n->in[0], perm, rank, n->loc)
                   : VALUE_NONE;
    const int64_t *first = node_ints(inner, ATTR_perm, &rank);
    int64_t both[TYPE_MAX_RANK];
    for (int i = 0; i < rank; i++)
        both[i] = first[perm[i]];
    return add_transpose(g, inner->in[0], both, rank, n->loc);
}

/* A transposition whose rows are x's last axis, with its last two dims in the opposite order: what
 * is left to transpose, if anything, moves whole rows.  Else VALUE_NONE. */
static ValueId swap_matrix(Graph *g, ValueId v)
{
    const Node *n = value_node(g, v);
    if (n->op != OP_transpose || n->hint != REMAT_AUTO)
        return VALUE_NONE;
    int rank;
    const int64_t *perm = node_ints(n, ATTR_perm, &rank);
    if (rank < 2 || perm[rank - 2] != rank - 1)
        return VALUE_NONE;
    int64_t swapped[TYPE_MAX_RANK];
    memcpy(swapped, perm, (size_t)rank * sizeof *perm);
    swapped[rank - 2] = perm[rank - 1];
    swapped[rank - 1] = rank - 1;
    return add_transpose(g, n->in[0], swapped, rank, n->loc);
}

/* matmul(a, transpose(b)) = matmul(a, b) with b read as it lies. */
static void fold_product(Graph *g, NodeId id)
{
    static const AttrKey flags[2] = {ATTR_ta, ATTR_tb};
    for (int i = 0; i < 2; i++) {
        ValueId swapped = swap_matrix(g, graph_node(g, id)->in[i]);
        if (swapped == VALUE_NONE)
            continue;
        Node *n = graph_node(g, id); /* adding nodes may have moved the table */
        n->in[i] = swapped;
        if (node_flag(n, flags[i]))
            node_drop_attr(n, flags[i]);
        else
            node_set_attr(g, n, (Attr){.key = flags[i], .u.i = 1});
    }
}

/* Sums and means over axes of size 1. */
static ValueId fold_reduction(Graph *g, const Node *n)
{
    ValueId x = n->in[0];
    Type to = *value_type(g, n->out[0]);
    if (value_type(g, x)->dtype != to.dtype) /* sums of bf16 */
        return VALUE_NONE;
    return type_elements(value_type(g, x)) == type_elements(&to) ? add_reshape(g, x, &to, n->loc)
                                                                 : VALUE_NONE;
}

static bool pad_is_empty(const Node *n)
{
    int rank, rank2;
    const int64_t *lo = node_ints(n, ATTR_lo, &rank), *hi = node_ints(n, ATTR_hi, &rank2);
    for (int i = 0; i < rank; i++)
        if (lo[i] || (i < rank2 && hi[i]))
            return false;
    return true;
}

/* What n's first output can be replaced with; VALUE_NONE = nothing. */
static ValueId fold_node(Graph *g, const Node *n)
{
    ValueId found = fold_constants(g, n);
    if (found != VALUE_NONE)
        return found;
    if (n->op == OP_mul || n->op == OP_div || n->op == OP_sub)
        return fold_arithmetic(g, n);
    if (n->op == OP_reshape)
        return fold_reshape(g, n);
    if (n->op == OP_transpose)
        return fold_transpose(g, n);
    if (n->op == OP_sum || n->op == OP_mean || n->op == OP_reduce_max)
        return fold_reduction(g, n);
    if (n->op == OP_cast || n->op == OP_broadcast || n->op == OP_slice)
        return same_type_or_none(g, n, n->in[0]);
    if (n->op == OP_concat && n->n_in == 1)
        return n->in[0];
    if (n->op == OP_pad && pad_is_empty(n))
        return n->in[0];
    if (n->op == OP_stop_gradient && strcmp(g->kind, "step") == 0) /* gradients are there */
        return n->in[0];
    return VALUE_NONE;
}

bool pass_fold(PassContext *ctx)
{
    Graph *g = ctx->graph;
    Pool *scratch = pool_new_child(ctx->pool);
    Rewrite r = rewrite_begin(g, scratch);
    for (size_t i = 0; i < r.n_old; i++) {
        NodeId id = r.old_order[i];
        rewrite_inputs(&r, id);
        if (graph_node(g, id)->op == OP_matmul)
            fold_product(g, id);
        Node copy = *graph_node(g, id); /* adding nodes may move the table */
        ValueId found = copy.hint == REMAT_AUTO ? fold_node(g, &copy) : VALUE_NONE;
        if (found != VALUE_NONE)
            rewrite_replace(&r, copy.out[0], found);
        else
            rewrite_keep(&r, id);
    }
    rewrite_end(&r);
    pool_free(scratch);
    return true;
}
