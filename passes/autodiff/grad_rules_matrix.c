/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Gradients of matrix products and convolutions. */
#include "passes/autodiff/grad.h"

/* The gradient of input `of`, of its type: that of a weight in f32 is the sum itself, not a rounded
 * one. */
static ValueId matmul_of(GradContext *c, int of, ValueId a, ValueId b, bool ta, bool tb)
{
    AttrList attrs = {0};
    if (ta)
        attrs_int(&attrs, ATTR_ta, 1);
    if (tb)
        attrs_int(&attrs, ATTR_tb, 1);
    grad_want_result(c, &attrs, a, b, grad_in_type(c, of).dtype);
    return grad_op(c, OP_matmul, (const ValueId[]){a, b}, 2, &attrs);
}

/* [.., K] as [rows, K]: a view. */
static ValueId as_rows(GradContext *c, ValueId v)
{
    Type t = grad_type(c, v), flat = {.dtype = t.dtype, .rank = 2};
    flat.dim[1] = t.dim[t.rank - 1];
    flat.dim[0] = type_elements(&t) / flat.dim[1];
    return grad_reshaped(c, v, &flat);
}

/* dB of C = A B for one B under all of A's batch: one product over all rows instead of a product a
 * batch and their sum. */
static ValueId flat_weight_grad(GradContext *c, bool tb)
{
    ValueId a = as_rows(c, grad_in(c, 0)), dy = as_rows(c, c->dout[0]);
    return tb ? matmul_of(c, 1, dy, a, true, false) : matmul_of(c, 1, a, dy, true, false);
}

/* With C = A B: dA = dC B^T, dB = A^T dC; an operand that is stored transposed gets the transposed
 * product. Batch dims that were broadcast are summed. */
void grad_matmul(GradContext *c)
{
    ValueId a = grad_in(c, 0), b = grad_in(c, 1), dy = c->dout[0];
    bool ta = node_flag(c->node, ATTR_ta), tb = node_flag(c->node, ATTR_tb);
    if (grad_wanted(c, 0))
        grad_set(c, 0, ta ? matmul_of(c, 0, b, dy, tb, true) : matmul_of(c, 0, dy, b, false, !tb));
    if (!grad_wanted(c, 1))
        return;
    if (grad_in_type(c, 1).rank == 2 && grad_in_type(c, 0).rank > 2 && !ta)
        c->din[1] = flat_weight_grad(c, tb);
    else
        grad_set(c, 1, tb ? matmul_of(c, 1, dy, a, true, ta) : matmul_of(c, 1, a, dy, !ta, false));
}

/* y = x W^T + b (x W + b with in_out) */
void grad_linear(GradContext *c)
{
    bool in_out = node_flag(c->node, ATTR_in_out);
    ValueId dy = c->dout[0];
    if (grad_wanted(c, 0)) {
        AttrList attrs = {0};
        if (!in_out)
            attrs_int(&attrs, ATTR_in_out, 1);
        grad_want_result(c, &attrs, dy, grad_in(c, 1), grad_in_type(c, 0).dtype);
        c->din[0] = grad_op(c, OP_linear, (const ValueId[]){dy, grad_in(c, 1)}, 2, &attrs);
    }
    if (grad_wanted(c, 1)) /* [in, out] = x^T dy, [out, in] = dy^T x */
        c->din[1] = flat_weight_grad(c, !in_out);
    if (grad_wanted(c, 2))
        c->din[2] = grad_sum_axes(c, as_rows(c, dy), (const int64_t[]){0}, 1);
}

/* The forward's attributes, and the size of the image or kernel that comes out. */
static ValueId conv_grad(GradContext *c, OpKind op, ValueId a, ValueId b, const int64_t *hw)
{
    AttrList attrs = grad_attrs_without(c, ATTR_dtype);
    attrs_ints(&attrs, ATTR_hw, hw, 2);
    if (op_chooses_result(op)) /* gradients of weights are f32 */
        grad_want_result(c, &attrs, a, b, grad_in_type(c, 0).dtype);
    return grad_op(c, op, (const ValueId[]){a, b}, 2, &attrs);
}

/* The gradient of a bias. */
static ValueId pixel_sums(GradContext *c, bool nhwc)
{
    static const int64_t axes[2][3] = {{0, 2, 3}, {0, 1, 2}};
    return grad_sum_axes(c, c->dout[0], axes[nhwc], 3);
}

void grad_conv2d(GradContext *c)
{
    bool nhwc = node_flag(c->node, ATTR_nhwc);
    Type x = grad_in_type(c, 0), w = grad_in_type(c, 1);
    ValueId dy = c->dout[0];
    if (grad_wanted(c, 0))
        c->din[0] = conv_grad(c, OP_conv2d_dgrad, dy, grad_in(c, 1), x.dim + (nhwc ? 1 : 2));
    if (grad_wanted(c, 1))
        c->din[1] = conv_grad(c, OP_conv2d_wgrad, grad_in(c, 0), dy, w.dim + (nhwc ? 0 : 2));
    if (grad_wanted(c, 2))
        c->din[2] = pixel_sums(c, nhwc);
}

/* What a convolution has in common with the transposed one. */
static void shared_attrs(const GradContext *c, AttrList *attrs)
{
    for (int i = 0; i < c->node->n_attr; i++)
        if (c->node->attr[i].key != ATTR_output_padding && c->node->attr[i].key != ATTR_dtype)
            attrs->items[attrs->n++] = c->node->attr[i];
}

/* dx = conv2d(dy, w).  With output padding of at least the stride (dilation larger than the stride)
 * that convolution makes further pixels, which x does not have. */
static ValueId deconv_dx(GradContext *c)
{
    AttrList attrs = {0}, cut = {0};
    const ValueId in[2] = {c->dout[0], grad_in(c, 1)};
    shared_attrs(c, &attrs);
    grad_want_result(c, &attrs, in[0], in[1], grad_in_type(c, 0).dtype);
    ValueId dx = grad_op(c, OP_conv2d, in, 2, &attrs);
    Type x = grad_in_type(c, 0), made = grad_type(c, dx);
    if (type_same_shape(&x, &made))
        return dx;
    attrs_ints(&cut, ATTR_start, (const int64_t[4]){0}, 4);
    attrs_ints(&cut, ATTR_limit, x.dim, 4);
    return grad_op(c, OP_slice, &dx, 1, &cut);
}

/* x as the convolution of dy has it: with zeros for those pixels. */
static ValueId deconv_x(GradContext *c)
{
    bool nhwc = node_flag(c->node, ATTR_nhwc);
    AttrList attrs = {0};
    int64_t lo[4] = {0}, hi[4] = {0}, more = 0;
    for (int i = 0; i < 2; i++) {
        int64_t extra = node_ints_at(c->node, ATTR_output_padding, i, 0);
        hi[i + (nhwc ? 1 : 2)] = extra / node_ints_at(c->node, ATTR_stride, i, 1);
        more += hi[i + (nhwc ? 1 : 2)];
    }
    ValueId x = grad_in(c, 0);
    attrs_ints(&attrs, ATTR_lo, lo, 4);
    attrs_ints(&attrs, ATTR_hi, hi, 4);
    return more ? grad_op(c, OP_pad, &x, 1, &attrs) : x;
}

/* The forward is the data gradient of a convolution, so x and dy exchange roles. */
void grad_deconv2d(GradContext *c)
{
    bool nhwc = node_flag(c->node, ATTR_nhwc);
    Type w = grad_in_type(c, 1);
    if (grad_wanted(c, 0))
        c->din[0] = deconv_dx(c);
    if (grad_wanted(c, 1)) {
        AttrList attrs = {0};
        shared_attrs(c, &attrs);
        attrs_ints(&attrs, ATTR_hw, w.dim + (nhwc ? 0 : 2), 2);
        const ValueId in[2] = {c->dout[0], deconv_x(c)};
        c->din[1] = grad_op(c, OP_conv2d_wgrad, in, 2, &attrs);
    }
    if (grad_wanted(c, 2))
        c->din[2] = pixel_sums(c, nhwc);
}

/* (q, k, v, bias?, rng?) -> out, max, sum: only out is differentiated, the others are there to be
 * saved; the bias has no gradient (the pass `attention` takes none that is learned). */
void grad_attention(GradContext *c)
{
    AttrList attrs = grad_attrs(c);
    ValueId in[8] = {c->dout[0],    grad_in(c, 0),  grad_in(c, 1),
                     grad_in(c, 2), grad_out(c, 1), grad_out(c, 2)};
    if (c->dout[0] == VALUE_NONE)
        return;
    if (grad_wanted(c, 3))
        c->refused = pool_printf(c->graph->pool, "attention has no gradient for its bias %s",
                                 graph_value(c->graph, grad_in(c, 3))->name);
    for (int i = 3; i < c->node->n_in; i++)
        in[i + 3] = grad_in(c, i);
    ValueId dq = grad_op(c, OP_attention_grad, in, c->node->n_in + 3, &attrs);
    for (int i = 0; i < 3; i++)
        if (grad_wanted(c, i))
            c->din[i] = grad_output(c, dq, i);
}
