/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gather and scatter_add along an axis: the longer side is [outer, length, inner], the index and
 * what it belongs to [outer, count, inner].  Numbers outside of the axis read its first or last
 * element, and add nothing, as those of an embedding do. */
#ifndef SCRIMP_CODEGEN_FORMS_GATHER_H
#define SCRIMP_CODEGEN_FORMS_GATHER_H

#include "codegen/forms/pod.h"

KERNEL_DESC_BEGIN
typedef struct GatherDesc {
    AxisShape shape;
    int64_t count, index_type, element_type; /* DType: of the index, of the data */
} GatherDesc;
KERNEL_DESC(GatherDesc)

/* whole: what has `length` elements along the axis. */
GatherDesc gather_describe(const Lowering *l, const Node *n, ValueId whole, ValueId index);

#endif
