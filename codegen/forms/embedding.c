/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/forms/embedding.h"

EmbeddingDesc embedding_describe(const Lowering *l, ValueId ids, ValueId table)
{
    const Type *t = value_type(l->graph, ids), *w = value_type(l->graph, table);
    return (EmbeddingDesc){type_elements(t), t->dtype, w->dim[0], w->dim[1]};
}
