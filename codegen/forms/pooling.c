/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/forms/pooling.h"

PoolDesc pool_describe(const Lowering *l, const Node *n)
{
    bool gradient = n->op == OP_maxpool_grad || n->op == OP_maxpool_index_grad;
    const Type *x = value_type(l->graph, gradient ? n->out[0] : n->in[0]);
    const Type *y = value_type(l->graph, gradient ? n->in[0] : n->out[0]);
    bool nhwc = node_flag(n, ATTR_nhwc);
    int row = nhwc ? 1 : 2;
    PoolDesc d = {.images = x->dim[0], .channels = x->dim[nhwc ? 3 : 1]};
    d.h = x->dim[row];
    d.w = x->dim[row + 1];
    d.oh = y->dim[row];
    d.ow = y->dim[row + 1];
    for (int i = 0; i < 2; i++) {
        d.kernel[i] = node_ints_at(n, ATTR_kernel, i, 1);
        d.stride[i] = node_ints_at(n, ATTR_stride, i, d.kernel[i]);
        d.padding[i] = node_ints_at(n, ATTR_padding, i, 0);
    }
    if (!nhwc) {
        d.images *= d.channels;
        d.channels = 1;
    }
    return d;
}
