/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/forms/checksum.h"

#include "ir/support/bug.h"
#include "ir/workspace.h"

ChecksumDesc checksum_describe(const Lowering *l, const Node *n)
{
    const Type *t = value_type(l->graph, n->in[0]);
    if (dtype_bytes(t->dtype) != 4)
        BUG("checksum of %s", dtype_name(t->dtype));
    return (ChecksumDesc){type_elements(t), reduce_chunks(l->graph, n),
                          reduce_partial_bytes(l->graph, n)};
}
