/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/forms/layernorm.h"

LayernormDesc layernorm_describe(const Lowering *l, const Node *n)
{
    AxisShape a = axis_shape(value_type(l->graph, n->in[0]), -1);
    bool grad = n->op == OP_layernorm_grad;
    LayernormDesc d = {.rows = a.outer, .length = a.length};
    d.gamma = n->n_in > (grad ? 4 : 1);
    d.beta = !grad && n->n_in > 2;
    d.rms = node_flag(n, ATTR_rms);
    d.eps = node_float(n, ATTR_eps, 1e-5);
    return d;
}
