/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A paper's own graph as the algorithms of the papers take it. */
#include "passes/paper_graph/forward_count.h"

static void set_edges(Pool *pool, ForwardGraph *g, const PaperGraph *c)
{
    g->pred = csr_new(pool, g->n);
    g->succ = csr_new(pool, g->n);
    for (int w = 0; w < g->n; w++)
        for (int k = 0; k < c->vertex[w].n_from; k++) {
            csr_count(&g->pred, w);
            csr_count(&g->succ, c->vertex[w].from[k]);
        }
    csr_close(&g->pred, pool, c->n_edges);
    csr_close(&g->succ, pool, c->n_edges);
    for (int w = 0; w < g->n; w++)
        for (int k = 0; k < c->vertex[w].n_from; k++) {
            csr_store(&g->pred, w, c->vertex[w].from[k]);
            csr_store(&g->succ, c->vertex[w].from[k], w);
        }
}

ForwardGraph forward_graph_of_count(Pool *pool, const PaperGraph *c)
{
    ForwardGraph g = {.n = c->n_vertices};
    double *time = POOL_ARRAY(pool, (size_t)g.n + 1, double);
    int64_t *bytes = POOL_ARRAY(pool, (size_t)g.n + 1, int64_t);
    for (int v = 0; v < g.n; v++) {
        time[v] = c->vertex[v].conv ? 10 : 1;
        bytes[v] = c->vertex[v].bytes;
        g.has_inputs |= c->vertex[v].source;
    }
    g.time = time;
    g.bytes = bytes;
    set_edges(pool, &g, c);
    return g;
}
