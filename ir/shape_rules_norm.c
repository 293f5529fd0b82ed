/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shapes of normalisation and losses. */
#include "ir/shape_rules.h"
#include "ir/workspace.h"

#include <inttypes.h>
#include <string.h>

/* Channels of x: dim `axis`, 1 by default. */
static bool bn_channels(const Graph *g, const Node *node, int i, int64_t *channels, ShapeError *err)
{
    int axis;
    if (!want_float(g, node, i, err) || !want_rank(g, node, i, 2, TYPE_MAX_RANK, err) ||
        !want_axis(node, shape_in(g, node, i)->rank, 1, &axis, err))
        return false;
    *channels = shape_in(g, node, i)->dim[axis];
    return true;
}

SHAPE_RULE(bn_stats)
{
    int64_t c;
    if (!bn_channels(g, node, 0, &c, err))
        return false;
    out[0] = out[1] = type_make(DTYPE_F32, 1, &c);
    return true;
}

/* bn_apply (x, mean, var, gamma, beta), bn_grad_x (dy, x, mean, var, gamma, dgamma, dbeta) */
SHAPE_RULE(bn_apply)
{
    int64_t c;
    int images = node->op == OP_bn_grad_x ? 2 : 1;
    if (!bn_channels(g, node, 0, &c, err))
        return false;
    *out = *shape_in(g, node, 0);
    return (images == 1 || want_type(g, node, 1, out, err)) &&
           want_vectors(g, node, images,
                        INPUT_NAMES("mean", "variance", "weight", "bias", "d.weight", "d.bias"), c,
                        err);
}

/* (dy, x, mean, var) -> dgamma, dbeta */
SHAPE_RULE(bn_grad_sums)
{
    int64_t c;
    if (!bn_channels(g, node, 0, &c, err))
        return false;
    out[0] = out[1] = type_make(DTYPE_F32, 1, &c);
    return want_type(g, node, 1, shape_in(g, node, 0), err) &&
           want_vectors(g, node, 2, INPUT_NAMES("mean", "variance"), c, err);
}

/* x -> y, or (dy, x) -> dx: windows of channels, which are dim `axis`, 1 by default */
SHAPE_RULE(lrn)
{
    int64_t channels, window = node_int(node, ATTR_window, 5);
    if (!bn_channels(g, node, 0, &channels, err))
        return false;
    *out = *shape_in(g, node, 0);
    if (window < 1 || window > LRN_WINDOW_MOST)
        return shape_fail(err, "E105", -1, "%s: a window of 1 to %d channels, got %" PRId64,
                          op_name(node->op), LRN_WINDOW_MOST, window);
    /* Else 0 or a negative number gets an exponent: inf and nan. */
    if (!(node_float(node, ATTR_k, 1) > 0))
        return shape_fail(err, "E105", -1, "%s: k must be above 0", op_name(node->op));
    if (!(node_float(node, ATTR_alpha, 1) >= 0))
        return shape_fail(err, "E105", -1, "%s: alpha must not be negative", op_name(node->op));
    if (channels > LRN_CHANNELS_MOST)
        return shape_fail(err, "E108", 0, "%s of %" PRId64 " channels, %d are the most",
                          op_name(node->op), channels, LRN_CHANNELS_MOST);
    return node->n_in < 2 || want_type(g, node, 1, out, err);
}

/* f32 in the shape of x without its last axis: a layer norm's mean and rstd */
static Type rows_of(const Type *x)
{
    Type t = *x;
    t.dtype = DTYPE_F32;
    t.dim[--t.rank] = 0;
    return t;
}

static bool want_rows(const Graph *g, const Node *node, ShapeError *err)
{
    return want_float(g, node, 0, err) && want_rank(g, node, 0, 1, TYPE_MAX_RANK, err);
}

/* (x, gamma?, beta?) -> y, mean, rstd */
SHAPE_RULE(layernorm)
{
    if (!want_rows(g, node, err))
        return false;
    const Type *x = shape_in(g, node, 0);
    out[0] = *x;
    out[1] = out[2] = rows_of(x);
    return want_vectors(g, node, 1, INPUT_NAMES("weight", "bias"), x->dim[x->rank - 1], err);
}

/* dy, x, mean, rstd: the common inputs of the gradients */
static bool layernorm_saved(const Graph *g, const Node *node, ShapeError *err)
{
    if (!want_rows(g, node, err))
        return false;
    Type rows = rows_of(shape_in(g, node, 0));
    return want_type(g, node, 1, shape_in(g, node, 0), err) && want_type(g, node, 2, &rows, err) &&
           want_type(g, node, 3, &rows, err);
}

/* (dy, x, mean, rstd, gamma?) -> dx */
SHAPE_RULE(layernorm_grad)
{
    if (!layernorm_saved(g, node, err))
        return false;
    *out = *shape_in(g, node, 0);
    return want_vectors(g, node, 4, INPUT_NAMES("weight"), out->dim[out->rank - 1], err);
}

/* (dy, x, mean, rstd) -> dgamma, dbeta */
SHAPE_RULE(layernorm_grad_sums)
{
    if (!layernorm_saved(g, node, err))
        return false;
    const Type *dy = shape_in(g, node, 0);
    out[0] = out[1] = type_make(DTYPE_F32, 1, &dy->dim[dy->rank - 1]);
    return true;
}

static bool loss_attrs(const Node *node, bool *each, ShapeError *err)
{
    double smoothing = node_float(node, ATTR_smoothing, 0.0);
    const char *reduction = node_string(node, ATTR_reduction, "mean");
    *each = strcmp(reduction, "none") == 0;
    if (!(smoothing >= 0.0 && smoothing <= 1.0))
        return shape_fail(err, "E105", -1, "%s: label smoothing %g is not in 0..1",
                          op_name(node->op), smoothing);
    if (*each || strcmp(reduction, "sum") == 0 || strcmp(reduction, "mean") == 0)
        return true;
    return shape_fail(err, "E105", -1, "%s: '%.32s' is no reduction", op_name(node->op), reduction);
}

/* logits [.., C at axis, ..] (default: the last axis), labels: integers, without that axis, weights
 * [C] (optional) -> f32[], or the shape of the labels when nothing is reduced */
SHAPE_RULE(cross_entropy)
{
    int axis, weight = node->op == OP_cross_entropy_grad ? 3 : 2;
    bool each;
    if (!want_float(g, node, 0, err) || !want_integer(g, node, 1, err) ||
        !want_rank(g, node, 0, 1, TYPE_MAX_RANK, err) ||
        !want_axis(node, shape_in(g, node, 0)->rank, shape_in(g, node, 0)->rank - 1, &axis, err))
        return false;
    const Type *x = shape_in(g, node, 0), *labels = shape_in(g, node, 1);
    Type want = {.dtype = DTYPE_F32};
    for (int i = 0; i < x->rank; i++)
        if (i != axis)
            want.dim[want.rank++] = x->dim[i];
    if (!type_same_shape(labels, &want))
        return shape_fail(err, "E101", 1,
                          "%s: labels are %s, expected %s for logits %s with classes in dim %d",
                          op_name(node->op), SHOW(labels), SHOW(&want), SHOW(x), axis);
    if (!loss_attrs(node, &each, err) ||
        !want_vectors(g, node, weight, INPUT_NAMES("weight"), x->dim[axis], err))
        return false;
    if (each && node->op == OP_accuracy)
        return shape_fail(err, "E105", -1, "accuracy: 'none' is no reduction of it");
    *out = each ? want : type_scalar(DTYPE_F32);
    return true;
}
