/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/forms/relu_mask.h"
#include "ir/strided_view.h"

ReluMaskDesc relu_mask_describe(const Lowering *l, const Node *n)
{
    ValueId x = n->in[0];
    const Type *t = value_type(l->graph, x);
    ReluMaskDesc d = {.elements = type_elements(t)};
    if (!value_is_dense(l->graph, x)) {
        d.row = t->dim[t->rank - 1];
        d.pitch = value_view(l->graph, x).stride[t->rank - 2];
    }
    return d;
}
