/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/forms/loss.h"

#include "ir/workspace.h"

LossDesc loss_describe(const Lowering *l, const Node *n)
{
    AxisShape a = axis_shape(value_type(l->graph, n->in[0]), node_int(n, ATTR_axis, -1));
    LossDesc d = {.outer = a.outer, .classes = a.length, .inner = a.inner};
    const char *reduction = node_string(n, ATTR_reduction, "mean");
    d.reduction = reduction[0] == 's' ? LOSS_SUM : reduction[0] == 'n' ? LOSS_NONE : LOSS_MEAN;
    d.weighted = n->n_in > (n->op == OP_cross_entropy_grad ? 3 : 2);
    d.label_type = value_type(l->graph, n->in[1])->dtype;
    d.ignore = node_int(n, ATTR_ignore_index, -100);
    d.smoothing = node_float(n, ATTR_smoothing, 0);
    d.chunks = reduce_chunks(l->graph, n);
    if (d.chunks)
        d.partial_bytes = reduce_partial_bytes(l->graph, n);
    return d;
}
