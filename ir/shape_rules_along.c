/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shapes of what works along one axis: the largest element, running sums, products. */
#include "ir/shape_rules.h"

/* Floats of this shape. */
static bool want_shape(const Graph *g, const Node *n, int i, const Type *expected, ShapeError *err)
{
    Type t = *expected;
    t.dtype = shape_in(g, n, i)->dtype;
    return want_float(g, n, i, err) && want_type(g, n, i, &t, err);
}

/* x without the axis, or with 1 there. */
static bool without_axis(const Node *node, const Type *x, bool keep, DType dtype, Type *out,
                         ShapeError *err)
{
    int axis;
    if (!want_axis(node, x->rank, x->rank - 1, &axis, err))
        return false;
    *out = type_scalar(dtype);
    for (int i = 0; i < x->rank; i++)
        if (i != axis || keep)
            out->dim[out->rank++] = i == axis ? 1 : x->dim[i];
    return true;
}

SHAPE_RULE(argmax)
{
    return without_axis(node, shape_in(g, node, 0), node_flag(node, ATTR_keepdims), DTYPE_I32, out,
                        err);
}

static bool want_sums(const Graph *g, const Node *n, ShapeError *err)
{
    const Type *x = shape_in(g, n, 0);
    if (x->dtype == DTYPE_I32 || dtype_is_real(x->dtype))
        return true;
    shape_fail(err, "E104", 0, "%s needs f32 or i32, got %s%s", op_name(n->op),
               dtype_name(x->dtype), SHOW(x));
    return shape_help(err, "|> cast(i32)");
}

/* x, or (dy, x, y) */
SHAPE_RULE(scan)
{
    const Type *x = shape_in(g, node, node->n_in > 1);
    int axis;
    *out = *x;
    if (!want_axis(node, x->rank, x->rank - 1, &axis, err))
        return false;
    if (node->n_in == 1)
        return want_sums(g, node, err);
    return want_float(g, node, 1, err) && want_shape(g, node, 0, x, err) &&
           want_shape(g, node, 2, x, err);
}

/* Products of bf16 are f32, as sums are. */
SHAPE_RULE(prod)
{
    const Type *x = shape_in(g, node, 0);
    DType dtype = dtype_is_real(x->dtype) ? DTYPE_F32 : x->dtype;
    return want_sums(g, node, err) &&
           without_axis(node, x, node_flag(node, ATTR_keepdims), dtype, out, err);
}

SHAPE_RULE(prod_grad)
{
    const Type *x = shape_in(g, node, 1);
    Type lines;
    *out = *x;
    return want_float(g, node, 1, err) && without_axis(node, x, true, DTYPE_F32, &lines, err) &&
           want_shape(g, node, 0, &lines, err);
}
