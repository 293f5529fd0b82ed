/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/forms/scan.h"

/* The last of the inputs has the full shape. */
ScanDesc scan_describe(const Lowering *l, const Node *n)
{
    const Type *x = value_type(l->graph, n->in[n->n_in - 1]);
    return (ScanDesc){.shape = axis_shape(x, node_int(n, ATTR_axis, -1)),
                      .op = n->op,
                      .integer = !dtype_is_real(x->dtype),
                      .reverse = node_flag(n, ATTR_reverse),
                      .exclusive = node_flag(n, ATTR_exclusive)};
}
