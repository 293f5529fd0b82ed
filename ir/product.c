/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/product.h"

static bool is_conv(const Node *n)
{
    return n->op == OP_conv2d || n->op == OP_conv2d_dgrad || n->op == OP_conv2d_wgrad;
}

bool conv_is_pointwise(const Graph *g, const Node *n)
{
    const Type *w = value_type(g, n->op == OP_conv2d_wgrad ? n->out[0] : n->in[1]);
    bool plain = node_flag(n, ATTR_nhwc) && node_int(n, ATTR_groups, 1) == 1 && w->dim[0] == 1 &&
                 w->dim[1] == 1;
    for (int i = 0; i < 2; i++)
        plain = plain && node_ints_at(n, ATTR_stride, i, 1) == 1 &&
                node_ints_at(n, ATTR_padding, i, 0) == 0;
    return plain;
}

/* Rows of A are what windows of an image have: steps go over its channels, which fill registers,
 * and places, one after another.  A data gradient's windows have all places without a stride alone.
 */
static bool has_windows(const Graph *g, const Node *n)
{
    const Type *w = value_type(g, n->in[1]), *image = value_type(g, n->in[0]);
    if (n->op == OP_conv2d_wgrad || !node_flag(n, ATTR_nhwc) || node_int(n, ATTR_groups, 1) != 1 ||
        image->dim[3] % PRODUCT_PAIRS_STEPS || !type_elements(w))
        return false;
    bool strides = node_ints_at(n, ATTR_stride, 0, 1) > 1 || node_ints_at(n, ATTR_stride, 1, 1) > 1;
    return n->op == OP_conv2d || !strides;
}

static ProductSides sides_of_conv(const Graph *g, const Node *n)
{
    const Type *a = value_type(g, n->in[0]), *w = value_type(g, n->in[1]),
               *y = value_type(g, n->out[0]);
    if (n->op == OP_conv2d_wgrad)
        return (ProductSides){a->dim[3], w->dim[3], a->dim[0] * a->dim[1] * a->dim[2]};
    int64_t pixels = y->dim[0] * y->dim[1] * y->dim[2];
    return (ProductSides){pixels, y->dim[3], w->dim[0] * w->dim[1] * a->dim[3]};
}

bool product_sides(const Graph *g, const Node *n, ProductSides *out)
{
    *out = (ProductSides){0};
    bool conv = is_conv(n) && !node_attr(n, ATTR_winograd) &&
                (conv_is_pointwise(g, n) || has_windows(g, n));
    if (conv)
        *out = sides_of_conv(g, n);
    if (n->op != OP_matmul && n->op != OP_linear)
        return conv;
    const Type *x = value_type(g, n->in[0]), *y = value_type(g, n->out[0]);
    out->columns = y->dim[y->rank - 1];
    out->rows = y->dim[y->rank - 2];
    for (int d = 0; n->op == OP_linear && d < y->rank - 2; d++)
        out->rows *= y->dim[d];
    out->steps = x->dim[x->rank - (node_flag(n, ATTR_ta) ? 2 : 1)];
    return true;
}
