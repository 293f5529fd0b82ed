/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Gradients of reductions, pooling, embeddings and operations that move data. */
#include "passes/autodiff/grad.h"

#include <string.h>

/* dims of the input with the reduced ones set to 1 */
static Type reduced_keepdims(const GradContext *c)
{
    Type t = grad_in_type(c, 0);
    int n;
    const int64_t *axes = node_ints(c->node, ATTR_axes, &n);
    bool all = node_attr(c->node, ATTR_axes) == NULL;
    for (int i = 0; i < t.rank && all; i++)
        t.dim[i] = 1;
    for (int i = 0; i < n; i++)
        t.dim[axes[i]] = 1;
    return t;
}

/* A value of the reduction's output shape, spread over the input. */
static ValueId spread(GradContext *c, ValueId v)
{
    Type x = grad_in_type(c, 0), kept = reduced_keepdims(c);
    v = grad_cast_to(c, grad_reshaped(c, v, &kept), x.dtype);
    if (type_same_shape(&kept, &x))
        return v;
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_shape, x.dim, x.rank);
    return grad_op(c, OP_broadcast, &v, 1, &attrs);
}

void grad_sum(GradContext *c)
{
    c->din[0] = spread(c, c->dout[0]);
}

void grad_mean(GradContext *c)
{
    Type x = grad_in_type(c, 0), y = grad_type(c, c->dout[0]);
    double count = (double)type_elements(&x) / (double)type_elements(&y);
    c->din[0] = spread(c, count == 1 ? c->dout[0] : grad_scale(c, c->dout[0], 1 / count));
}

/* dy to the elements equal to the maximum, in equal parts (as PyTorch's amax). */
void grad_reduce_max(GradContext *c)
{
    Type kept = reduced_keepdims(c);
    AttrList as_float = {0}, sum = grad_attrs_without(c, ATTR_keepdims);
    attrs_string(&as_float, ATTR_dtype, "f32");
    attrs_int(&sum, ATTR_keepdims, 1);
    ValueId equal = grad_op2(c, OP_eq, grad_in(c, 0), grad_reshaped(c, grad_out(c, 0), &kept));
    ValueId ones = grad_op(c, OP_cast, &equal, 1, &as_float);
    ValueId count = grad_op(c, OP_sum, &ones, 1, &sum);
    ValueId part = grad_op2(c, OP_div, grad_reshaped(c, c->dout[0], &kept), count);
    c->din[0] = grad_op3(c, OP_select, equal, part, grad_number(c, 0));
}

/* The sum of what came later: the other way round. */
void grad_cumsum(GradContext *c)
{
    AttrList attrs = grad_attrs_without(c, ATTR_reverse);
    if (!node_flag(c->node, ATTR_reverse))
        attrs_int(&attrs, ATTR_reverse, 1);
    c->din[0] = grad_op(c, OP_cumsum, c->dout, 1, &attrs);
}

void grad_cumprod(GradContext *c)
{
    AttrList attrs = grad_attrs(c);
    const ValueId in[3] = {c->dout[0], grad_in(c, 0), grad_out(c, 0)};
    c->din[0] = grad_op(c, OP_cumprod_grad, in, 3, &attrs);
}

void grad_prod(GradContext *c)
{
    AttrList attrs = grad_attrs_without(c, ATTR_keepdims);
    Type kept = grad_in_type(c, 0);
    kept.dim[node_int(c->node, ATTR_axis, 0)] = 1;
    const ValueId in[2] = {grad_reshaped(c, c->dout[0], &kept), grad_in(c, 0)};
    c->din[0] = grad_op(c, OP_prod_grad, in, 2, &attrs);
}

void grad_maxpool(GradContext *c)
{
    AttrList attrs = grad_attrs(c);
    c->din[0] =
        grad_op(c, OP_maxpool_grad, (const ValueId[]){c->dout[0], grad_in(c, 0)}, 2, &attrs);
}

void grad_avgpool(GradContext *c)
{
    AttrList attrs = grad_attrs(c);
    Type x = grad_in_type(c, 0);
    attrs_ints(&attrs, ATTR_hw, x.dim + (node_flag(c->node, ATTR_nhwc) ? 1 : 2), 2);
    c->din[0] = grad_op(c, OP_avgpool_grad, c->dout, 1, &attrs);
}

/* Linear in x: dx needs dy and the size of x. */
static void grad_resample(GradContext *c, OpKind gradient)
{
    AttrList attrs = grad_attrs_without(c, ATTR_hw);
    Type x = grad_in_type(c, 0);
    attrs_ints(&attrs, ATTR_hw, x.dim + (node_flag(c->node, ATTR_nhwc) ? 1 : 2), 2);
    c->din[0] = grad_op(c, gradient, c->dout, 1, &attrs);
}

void grad_adaptive_avgpool(GradContext *c)
{
    grad_resample(c, OP_adaptive_avgpool_grad);
}

void grad_resize(GradContext *c)
{
    grad_resample(c, OP_resize_grad);
}

/* (ids, table).  Few rows of a table change: they are added to what the other uses of the table
 * have added up, so that there is one tensor of the table's size, not two and their sum. */
void grad_embedding(GradContext *c)
{
    AttrList attrs = {0};
    Type table = grad_in_type(c, 1);
    ValueId so_far = c->so_far[1];
    attrs_ints(&attrs, ATTR_shape, table.dim, table.rank);
    c->has_so_far[1] = so_far != VALUE_NONE && value_type(c->graph, so_far)->dtype == DTYPE_F32;
    const ValueId in[3] = {grad_in(c, 0), c->dout[0], so_far};
    c->din[1] = grad_op(c, OP_embedding_grad, in, c->has_so_far[1] ? 3 : 2, &attrs);
}

/* (x, index) */
void grad_gather(GradContext *c)
{
    AttrList attrs = grad_attrs(c);
    Type x = grad_in_type(c, 0);
    attrs_ints(&attrs, ATTR_shape, x.dim, x.rank);
    const ValueId in[2] = {grad_in(c, 1), c->dout[0]};
    if (grad_wanted(c, 0))
        c->din[0] = grad_op(c, OP_scatter_add, in, 2, &attrs);
}

/* (index, src); what was not added has no gradient. */
void grad_scatter_add(GradContext *c)
{
    AttrList attrs = grad_attrs_without(c, ATTR_shape);
    const ValueId in[2] = {c->dout[0], grad_in(c, 0)};
    if (grad_wanted(c, 1))
        c->din[1] = grad_op(c, OP_gather, in, 2, &attrs);
}

void grad_reshape(GradContext *c)
{
    Type x = grad_in_type(c, 0);
    c->din[0] = grad_reshaped(c, c->dout[0], &x);
}

void grad_transpose(GradContext *c)
{
    int n;
    const int64_t *perm = node_ints(c->node, ATTR_perm, &n);
    int64_t inverse[TYPE_MAX_RANK] = {0};
    for (int i = 0; i < n; i++)
        inverse[perm[i]] = i;
    c->din[0] = grad_transposed(c, c->dout[0], inverse);
}

void grad_broadcast(GradContext *c)
{
    grad_set(c, 0, c->dout[0]);
}

static ValueId pad_of(GradContext *c, ValueId v, const int64_t *lo, const int64_t *hi, int rank)
{
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_lo, lo, rank);
    attrs_ints(&attrs, ATTR_hi, hi, rank);
    return grad_op(c, OP_pad, &v, 1, &attrs);
}

static ValueId slice_of(GradContext *c, ValueId v, const int64_t *start, const int64_t *limit,
                        int rank)
{
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_start, start, rank);
    attrs_ints(&attrs, ATTR_limit, limit, rank);
    return grad_op(c, OP_slice, &v, 1, &attrs);
}

/* Puts step-1 zeros behind each element along one axis: [A, n, B] padded as [A, n, 1, B] -> [A, n,
 * step, B], then the zeros after the last element are cut off. */
static ValueId dilate(GradContext *c, ValueId v, int axis, int64_t step)
{
    Type t = grad_type(c, v), wide = {.dtype = t.dtype, .rank = 4, .dim = {1, t.dim[axis], 1, 1}};
    for (int i = 0; i < t.rank; i++)
        if (i != axis)
            wide.dim[i < axis ? 0 : 3] *= t.dim[i];
    v = grad_reshaped(c, v, &wide);
    v = pad_of(c, v, (const int64_t[]){0, 0, 0, 0}, (const int64_t[]){0, 0, step - 1, 0}, 4);
    const int64_t start[TYPE_MAX_RANK] = {0};
    t.dim[axis] *= step;
    v = grad_reshaped(c, v, &t);
    t.dim[axis] -= step - 1;
    return slice_of(c, v, start, t.dim, t.rank);
}

/* dy goes back to where it was taken from, zeros elsewhere. */
void grad_slice(GradContext *c)
{
    Type x = grad_in_type(c, 0);
    ValueId v = c->dout[0];
    int64_t lo[TYPE_MAX_RANK], hi[TYPE_MAX_RANK];
    bool padded = false;
    for (int i = 0; i < x.rank; i++) {
        int64_t step = node_ints_at(c->node, ATTR_step, i, 1);
        if (step > 1 && grad_type(c, v).dim[i] > 1)
            v = dilate(c, v, i, step);
        lo[i] = node_ints_at(c->node, ATTR_start, i, 0);
        hi[i] = x.dim[i] - lo[i] - grad_type(c, v).dim[i];
        padded |= lo[i] > 0 || hi[i] > 0;
    }
    c->din[0] = padded ? pad_of(c, v, lo, hi, x.rank) : v;
}

void grad_concat(GradContext *c)
{
    int64_t axis = node_int(c->node, ATTR_axis, 0), start[TYPE_MAX_RANK] = {0};
    Type limit = grad_type(c, c->dout[0]);
    limit.dim[axis] = 0;
    for (int i = 0; i < c->node->n_in; i++) {
        limit.dim[axis] += grad_in_type(c, i).dim[axis];
        if (grad_wanted(c, i))
            c->din[i] = c->node->n_in == 1 ? c->dout[0]
                                           : slice_of(c, c->dout[0], start, limit.dim, limit.rank);
        start[axis] = limit.dim[axis];
    }
}

void grad_pad(GradContext *c)
{
    Type x = grad_in_type(c, 0);
    int64_t start[TYPE_MAX_RANK], limit[TYPE_MAX_RANK];
    for (int i = 0; i < x.rank; i++) {
        start[i] = node_ints_at(c->node, ATTR_lo, i, 0);
        limit[i] = start[i] + x.dim[i];
    }
    c->din[0] = slice_of(c, c->dout[0], start, limit, x.rank);
}
