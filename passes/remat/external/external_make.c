/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A step of scrimp's own as an ExternalGraph. */
#include "passes/remat/external/external.h"

static ExternalOutput *one_output(Pool *pool, int64_t bytes, bool keep)
{
    ExternalOutput *out = POOL_NEW(pool, ExternalOutput);
    *out = (ExternalOutput){.bytes = bytes, .keep = keep};
    return out;
}

typedef struct Maker {
    Pool *pool;
    const RematProblem *p;
    ExternalGraph *g;
    ExternalRef *ref; /* by tensor: who makes it */
} Maker;

/* What exists before the first node: a node of its own that runs once, in no time. */
static void add_source(Maker *m, int tensor)
{
    const RematTensor *t = &m->p->tensor[tensor];
    ExternalNode *node = &m->g->node[m->g->n_nodes];
    m->ref[tensor] = (ExternalRef){m->g->n_nodes++, 0};
    *node = (ExternalNode){.name = t->name, .n_out = 1};
    node->out = one_output(m->pool, t->bytes, t->keep);
    node->out->persistent = t->persistent;
}

static ExternalRef *refs_of(Maker *m, const int *tensors, int n)
{
    ExternalRef *refs = POOL_ARRAY(m->pool, (size_t)n + 1, ExternalRef);
    for (int k = 0; k < n; k++)
        refs[k] = m->ref[tensors[k]];
    return refs;
}

static void add_node(Maker *m, const RematNode *from)
{
    int index = m->g->n_nodes++;
    ExternalNode *node = &m->g->node[index];
    *node = (ExternalNode){.name = from->name,
                           .time = from->cost,
                           .workspace = from->workspace,
                           .rerun = from->rerun,
                           .n_in = from->n_in,
                           .n_overwrites = from->n_overwrites,
                           .n_out = from->n_out};
    node->in = refs_of(m, from->in, from->n_in);
    node->overwrites = refs_of(m, from->overwrites, from->n_overwrites);
    node->out = POOL_ARRAY(m->pool, (size_t)from->n_out + 1, ExternalOutput);
    for (int k = 0; k < from->n_out; k++) {
        const RematTensor *t = &m->p->tensor[from->out[k]];
        m->ref[from->out[k]] = (ExternalRef){index, k};
        node->out[k] = (ExternalOutput){t->bytes, t->keep, t->persistent};
    }
}

ExternalGraph *external_from_problem(Pool *pool, const RematProblem *p)
{
    Maker m = {.pool = pool, .p = p, .g = POOL_NEW(pool, ExternalGraph)};
    size_t most = (size_t)p->n_nodes + (size_t)p->n_tensors + 1;
    *m.g = (ExternalGraph){.node = POOL_ARRAY(pool, most, ExternalNode)};
    m.ref = POOL_ARRAY(pool, (size_t)p->n_tensors + 1, ExternalRef);
    for (int t = 0; t < p->n_tensors; t++)
        if (p->tensor[t].producer < 0)
            add_source(&m, t);
    for (int n = 0; n < p->n_nodes; n++)
        add_node(&m, &p->node[n]);
    return m.g;
}
