/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/forms/sort.h"

#include "ir/workspace.h"

SortDesc sort_describe(const Lowering *l, const Node *n)
{
    const Type *x = value_type(l->graph, n->in[0]), *y = value_type(l->graph, n->out[0]);
    int64_t length = x->dim[x->rank - 1];
    return (SortDesc){.lines = type_elements(x) / length,
                      .length = length,
                      .count = y->dim[y->rank - 1],
                      .descending = node_flag(n, ATTR_descending),
                      .integer = !dtype_is_real(x->dtype),
                      .slots = sort_slots(l->graph, n)};
}
