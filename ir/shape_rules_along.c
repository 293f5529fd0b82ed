/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shapes of what works along one axis: the largest element, running sums, products,
 * elements by number, order. */
#include "ir/shape_rules.h"
#include "ir/workspace.h"

#include <inttypes.h>

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

static bool want_sums(const Graph *g, const Node *n, int i, ShapeError *err)
{
    const Type *x = shape_in(g, n, i);
    if (x->dtype == DTYPE_I32 || dtype_is_real(x->dtype))
        return true;
    shape_fail(err, "E104", i, "%s needs f32 or i32, got %s%s", op_name(n->op),
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
        return want_sums(g, node, 0, err);
    return want_float(g, node, 1, err) && want_shape(g, node, 0, x, err) &&
           want_shape(g, node, 2, x, err);
}

/* Products of bf16 are f32, as sums are. */
SHAPE_RULE(prod)
{
    const Type *x = shape_in(g, node, 0);
    DType dtype = dtype_is_real(x->dtype) ? DTYPE_F32 : x->dtype;
    return want_sums(g, node, 0, err) &&
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

/* The index has the shape of what it numbers the elements of, but along the axis. */
static bool want_index(const Graph *g, const Node *n, int i, const Type *whole, ShapeError *err)
{
    const Type *index = shape_in(g, n, i);
    int axis;
    if (!want_integer(g, n, i, err) || !want_axis(n, whole->rank, whole->rank - 1, &axis, err))
        return false;
    Type wanted = *whole;
    if (index->rank == whole->rank)
        wanted.dim[axis] = index->dim[axis];
    if (type_same_shape(index, &wanted))
        return true;
    return shape_fail(err, "E101", i, "%s along axis %d: an index %s does not fit %s",
                      op_name(n->op), axis, SHOW(index), SHOW(whole));
}

SHAPE_RULE(gather)
{
    *out = *shape_in(g, node, 1);
    out->dtype = shape_in(g, node, 0)->dtype;
    return want_index(g, node, 1, shape_in(g, node, 0), err);
}

SHAPE_RULE(scatter_add)
{
    const Type *index = shape_in(g, node, 0), *src = shape_in(g, node, 1);
    int64_t dims[TYPE_MAX_RANK];
    Type fits = *index;
    fits.dtype = src->dtype;
    if (!want_ints(node, ATTR_shape, index->rank, 1, -1, dims, err))
        return false;
    *out = type_make(dtype_is_real(src->dtype) ? DTYPE_F32 : src->dtype, index->rank, dims);
    if (!type_valid(out))
        return shape_fail(err, "E108", -1, "scatter_add: the shape %s is too large", SHOW(out));
    return want_sums(g, node, 1, err) && want_type(g, node, 1, &fits, err) &&
           want_index(g, node, 0, out, err);
}

SHAPE_RULE(argsort)
{
    const Type *x = shape_in(g, node, 0);
    if (!want_rank(g, node, 0, 1, TYPE_MAX_RANK, err) || !want_sums(g, node, 0, err))
        return false;
    int64_t length = x->dim[x->rank - 1], count = node_int(node, ATTR_count, length);
    if (length > SORT_LENGTH_MOST)
        return shape_fail(err, "E108", 0, "argsort of %" PRId64 " elements, %d are the most",
                          length, SORT_LENGTH_MOST);
    if (count < 1 || count > length)
        return shape_fail(err, "E105", 0, "the first %" PRId64 " of %" PRId64 " elements", count,
                          length);
    *out = *x;
    out->dtype = DTYPE_I32;
    out->dim[x->rank - 1] = count;
    return true;
}
