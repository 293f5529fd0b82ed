/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shapes of matrix products and embeddings. */
#include "ir/product.h"
#include "ir/shape_rules.h"

#include <inttypes.h>

/* Whole chains, each no longer than a product's own. */
static bool want_chains(const Node *node, int64_t k, ShapeError *err)
{
    int64_t chain = node_int(node, ATTR_chain, 1);
    if (chain < 1 || chain > PRODUCT_CHAIN)
        return shape_fail(err, "E105", -1, "matmul: chain is from 1 to %d, not %" PRId64,
                          (int)PRODUCT_CHAIN, chain);
    return k % chain == 0 ||
           shape_fail(err, "E101", 0,
                      "matmul sums over %" PRId64 " elements here, not over chains of %" PRId64, k,
                      chain);
}

/* a[..,M,K] b[..,K,N] -> [..,M,N]; ta, tb: stored with the last two dims exchanged */
SHAPE_RULE(matmul)
{
    if (!want_float(g, node, 0, err) || !want_float(g, node, 1, err) ||
        !want_rank(g, node, 0, 2, TYPE_MAX_RANK, err) ||
        !want_rank(g, node, 1, 2, TYPE_MAX_RANK, err))
        return false;
    const Type *a = shape_in(g, node, 0), *b = shape_in(g, node, 1);
    int ta = node_flag(node, ATTR_ta), tb = node_flag(node, ATTR_tb);
    int64_t m = a->dim[a->rank - 2 + ta], ka = a->dim[a->rank - 1 - ta];
    int64_t kb = b->dim[b->rank - 2 + tb], n = b->dim[b->rank - 1 - tb];
    if (ka != kb)
        return shape_fail(
            err, "E101", 1, "matmul sums over %" PRId64 " elements of %s%s but %" PRId64 " of %s%s",
            ka, SHOW(a), ta ? " transposed" : "", kb, SHOW(b), tb ? " transposed" : "");
    Type batch_a = *a, batch_b = *b;
    batch_a.rank -= 2;
    batch_b.rank -= 2;
    if (!type_broadcast(&batch_a, &batch_b, out))
        return shape_fail(err, "E101", 1, "matmul: the batch dims of %s and %s do not broadcast",
                          SHOW(a), SHOW(b));
    out->dim[out->rank++] = m;
    out->dim[out->rank++] = n;
    return want_chains(node, ka, err) && want_result(g, node, out, err);
}

static bool linear_weight(const Graph *g, const Node *node, int64_t *features, ShapeError *err)
{
    const Type *x = shape_in(g, node, 0), *w = shape_in(g, node, 1);
    int in_out = node_flag(node, ATTR_in_out);
    if (!want_float(g, node, 1, err) || !want_rank(g, node, 1, 2, 2, err))
        return false;
    *features = w->dim[in_out ? 1 : 0];
    if (w->dim[in_out ? 0 : 1] == x->dim[x->rank - 1])
        return true;
    return shape_fail(
        err, "E101", 0, "linear takes %" PRId64 " features here but the weight %s%s wants %" PRId64,
        x->dim[x->rank - 1], SHOW(w), in_out ? " (in, out)" : "", w->dim[in_out ? 0 : 1]);
}

SHAPE_RULE(linear)
{
    const Type *x = shape_in(g, node, 0);
    int64_t features;
    if (!want_float(g, node, 0, err))
        return false;
    if (x->rank < 2)
        return shape_fail(err, "E103", 0, "linear needs at least 2 dims, got %s", SHOW(x));
    if (!linear_weight(g, node, &features, err) || !want_bias_vector(g, node, features, err))
        return false;
    *out = *x;
    out->dim[x->rank - 1] = features;
    return want_result(g, node, out, err);
}

/* Appends the width of the table to the shape of the ids. */
static bool embedded(const Node *node, const Type *ids, int64_t width, Type *out, ShapeError *err)
{
    if (ids->rank == TYPE_MAX_RANK)
        return shape_fail(err, "E103", 0, "%s: the result has more than %d dims", op_name(node->op),
                          TYPE_MAX_RANK);
    *out = *ids;
    out->dtype = DTYPE_F32;
    out->dim[out->rank++] = width;
    return true;
}

/* (ids, table[V,C]) -> [.., C] */
SHAPE_RULE(embedding)
{
    return want_integer(g, node, 0, err) && want_float(g, node, 1, err) &&
           want_rank(g, node, 1, 2, 2, err) &&
           embedded(node, shape_in(g, node, 0), shape_in(g, node, 1)->dim[1], out, err) &&
           want_result(g, node, out, err);
}

/* (ids, dy, what it is added to) -> gradient of the table, whose shape is an attribute */
SHAPE_RULE(embedding_grad)
{
    int64_t dims[2];
    Type dy;
    if (!want_integer(g, node, 0, err) || !want_ints(node, ATTR_shape, 2, 1, -1, dims, err) ||
        !embedded(node, shape_in(g, node, 0), dims[1], &dy, err) || !want_float(g, node, 1, err))
        return false;
    dy.dtype = shape_in(g, node, 1)->dtype;
    *out = type_make(DTYPE_F32, 2, dims);
    return want_type(g, node, 1, &dy, err) && (node->n_in < 3 || want_type(g, node, 2, out, err));
}
