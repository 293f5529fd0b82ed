/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/product.h"

static bool is_conv(const Node *n)
{
    return n->op == OP_conv2d || n->op == OP_conv2d_dgrad || n->op == OP_conv2d_wgrad;
}

/* Every pixel of one image meets that of the other alone. */
static bool is_pointwise(const Graph *g, const Node *n)
{
    const Type *w = value_type(g, n->op == OP_conv2d_wgrad ? n->out[0] : n->in[1]);
    bool plain = node_flag(n, ATTR_nhwc) && node_int(n, ATTR_groups, 1) == 1 && w->dim[0] == 1 &&
                 w->dim[1] == 1;
    for (int i = 0; i < 2; i++)
        plain = plain && node_ints_at(n, ATTR_stride, i, 1) == 1 &&
                node_ints_at(n, ATTR_padding, i, 0) == 0;
    return plain;
}

static ProductSides sides_of_conv(const Graph *g, const Node *n)
{
    const Type *a = value_type(g, n->in[0]), *b = value_type(g, n->in[1]);
    int64_t pixels = a->dim[0] * a->dim[1] * a->dim[2], channels = a->dim[3];
    if (n->op == OP_conv2d_wgrad)
        return (ProductSides){channels, b->dim[3], pixels};
    return (ProductSides){pixels, value_type(g, n->out[0])->dim[3], channels};
}

bool product_sides(const Graph *g, const Node *n, ProductSides *out)
{
    *out = (ProductSides){0};
    if (is_conv(n) && is_pointwise(g, n))
        *out = sides_of_conv(g, n);
    if (n->op != OP_matmul && n->op != OP_linear)
        return is_conv(n) && is_pointwise(g, n);
    const Type *x = value_type(g, n->in[0]), *y = value_type(g, n->out[0]);
    out->columns = y->dim[y->rank - 1];
    out->rows = y->dim[y->rank - 2];
    for (int d = 0; n->op == OP_linear && d < y->rank - 2; d++)
        out->rows *= y->dim[d];
    out->steps = x->dim[x->rank - (node_flag(n, ATTR_ta) ? 2 : 1)];
    return true;
}
