/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/forms/softmax.h"

SoftmaxDesc softmax_describe(const Lowering *l, const Node *n)
{
    AxisShape a = axis_shape(value_type(l->graph, n->in[0]), node_int(n, ATTR_axis, -1));
    bool log = n->op == OP_log_softmax || n->op == OP_log_softmax_grad;
    bool grad = n->op == OP_softmax_grad || n->op == OP_log_softmax_grad;
    return (SoftmaxDesc){a.outer, a.length, a.inner, log, grad};
}
