/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/forms/embedding.h"

EmbeddingDesc embedding_describe(const Lowering *l, const Node *n)
{
    ValueId table = n->op == OP_embedding ? n->in[1] : n->out[0];
    const Type *ids = value_type(l->graph, n->in[0]), *w = value_type(l->graph, table);
    return (EmbeddingDesc){type_elements(ids), ids->dtype, w->dim[0], w->dim[1], n->n_in > 2};
}

int embedding_bufs(const Node *n, CallBuf *bufs)
{
    for (int i = 0; i < n->n_in; i++)
        bufs[i] = (CallBuf){n->in[i], 0};
    bufs[n->n_in] = (CallBuf){n->out[0], 0};
    return n->n_in + 1;
}
