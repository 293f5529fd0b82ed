/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A forward pass as a paper counts it, as an ExternalGraph. */
#include "passes/paper_graph/forward_count.h"

ExternalGraph *external_from_count(Pool *pool, const PaperGraph *c)
{
    ExternalGraph *g = POOL_NEW(pool, ExternalGraph);
    *g = (ExternalGraph){.forward = true, .n_nodes = c->n_vertices};
    g->node = POOL_ARRAY(pool, (size_t)c->n_vertices + 1, ExternalNode);
    bool *read = POOL_ARRAY(pool, (size_t)c->n_vertices + 1, bool);
    for (int v = 0; v < c->n_vertices; v++) {
        const PaperVertex *x = &c->vertex[v];
        ExternalRef *in = POOL_ARRAY(pool, (size_t)x->n_from + 1, ExternalRef);
        for (int k = 0; k < x->n_from; k++) {
            in[k] = (ExternalRef){x->from[k], 0};
            read[x->from[k]] = true;
        }
        g->node[v] = (ExternalNode){.name = x->name,
                                    .time = x->source ? 0
                                            : x->conv ? 10
                                                      : 1,
                                    .rerun = !x->source,
                                    .in = in,
                                    .n_in = x->n_from,
                                    .n_out = 1};
    }
    ExternalOutput *out = POOL_ARRAY(pool, (size_t)c->n_vertices + 1, ExternalOutput);
    for (int v = 0; v < c->n_vertices; v++) {
        out[v] = (ExternalOutput){.bytes = c->vertex[v].bytes, .keep = !read[v]};
        g->node[v].out = &out[v];
    }
    return g;
}
