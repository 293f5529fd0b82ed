/* Gradients of matrix products and convolutions. */
#include "passes/grad.h"

static ValueId matmul_of(GradContext *c, ValueId a, ValueId b, bool ta, bool tb)
{
    AttrList attrs = {0};
    if (ta)
        attrs_int(&attrs, ATTR_ta, 1);
    if (tb)
        attrs_int(&attrs, ATTR_tb, 1);
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
    return tb ? matmul_of(c, dy, a, true, false) : matmul_of(c, a, dy, true, false);
}

/* With C = A B: dA = dC B^T, dB = A^T dC; an operand that is stored transposed gets the transposed
 * product. Batch dims that were broadcast are summed. */
void grad_matmul(GradContext *c)
{
    ValueId a = grad_in(c, 0), b = grad_in(c, 1), dy = c->dout[0];
    bool ta = node_flag(c->node, ATTR_ta), tb = node_flag(c->node, ATTR_tb);
    if (grad_wanted(c, 0))
        grad_set(c, 0, ta ? matmul_of(c, b, dy, tb, true) : matmul_of(c, dy, b, false, !tb));
    if (!grad_wanted(c, 1))
        return;
    if (grad_in_type(c, 1).rank == 2 && grad_in_type(c, 0).rank > 2 && !ta)
        c->din[1] = flat_weight_grad(c, tb);
    else
        grad_set(c, 1, tb ? matmul_of(c, dy, a, true, ta) : matmul_of(c, a, dy, !ta, false));
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
    AttrList attrs = grad_attrs(c);
    attrs_ints(&attrs, ATTR_hw, hw, 2);
    return grad_op(c, op, (const ValueId[]){a, b}, 2, &attrs);
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
    static const int64_t axes[2][3] = {{0, 2, 3}, {0, 1, 2}};
    if (grad_wanted(c, 2))
        c->din[2] = grad_sum_axes(c, dy, axes[nhwc], 3);
}
