/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/forms/gather.h"

GatherDesc gather_describe(const Lowering *l, const Node *n, ValueId whole, ValueId index)
{
    const Type *t = value_type(l->graph, whole), *i = value_type(l->graph, index);
    int64_t axis = node_int(n, ATTR_axis, -1);
    return (GatherDesc){.shape = axis_shape(t, axis),
                        .count = axis_shape(i, axis).length,
                        .index_type = i->dtype,
                        .element_type = t->dtype};
}
