/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/forms/lrn.h"
#include "codegen/forms/pod.h"

static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

LrnDesc lrn_describe(const Lowering *l, const Node *n)
{
    AxisShape a = axis_shape(value_type(l->graph, n->in[0]), node_int(n, ATTR_axis, 1));
    int64_t window = node_int(n, ATTR_window, 5);
    LrnDesc d = {.outer = a.outer, .channels = a.length, .inner = a.inner};
    d.before = at_most(window / 2, a.length);
    d.after = at_most((window - 1) / 2, a.length);
    d.alpha = node_float(n, ATTR_alpha, 1);
    d.beta = node_float(n, ATTR_beta, 0.75);
    d.k = node_float(n, ATTR_k, 1);
    return d;
}
