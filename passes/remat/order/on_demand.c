/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Gradients of a weight are added up from its last use on.  Where its uses have large tensors that
 * nothing but their gradients needs late, such as chunks of logits, an order that makes those of
 * the first use first keeps them all: here they are made when the backward pass asks for them. */
#include "passes/remat/order/reorder.h"

typedef struct Demand {
    const RematProblem *p;
    const NodeGraph *g;
    int *waiting;   /* by node: predecessors that have not run */
    int *looked_at; /* by node: of its predecessors, so many have run */
    int *stack;     /* each node waits here as one that is needed, and as one that follows: 2 n */
    bool *ran;
    int *order, depth, n_done;
} Demand;

static int64_t bytes_read(const RematProblem *p, int n)
{
    int64_t bytes = 0;
    for (int k = 0; k < p->node[n].n_in; k++)
        bytes += p->tensor[p->node[n].in[k]].bytes;
    return bytes;
}

/* What reads much and makes little of it, such as a loss, follows at once: what it reads may then
 * be written over. */
static void run_on_demand(Demand *d, int n)
{
    d->ran[n] = true;
    d->order[d->n_done++] = n;
    for (int i = d->g->succ.begin[n + 1] - 1; i >= d->g->succ.begin[n]; i--) {
        int next = d->g->succ.item[i];
        if (--d->waiting[next] == 0 && d->p->node[next].n_overwrites == 0 &&
            node_makes_little(d->p, next, bytes_read(d->p, next)))
            d->stack[d->depth++] = next;
    }
}

/* A predecessor that has not run; -1: none. */
static int missing_for(Demand *d, int n)
{
    const int *pred = d->g->pred.item + d->g->pred.begin[n];
    while (d->looked_at[n] < csr_length(&d->g->pred, n)) {
        if (!d->ran[pred[d->looked_at[n]]])
            return pred[d->looked_at[n]];
        d->looked_at[n]++;
    }
    return -1;
}

/* A node, and before it whatever has not run of what it needs. */
static void demand(Demand *d, int node)
{
    d->stack[d->depth++] = node;
    while (d->depth > 0) {
        int n = d->stack[d->depth - 1], missing = missing_for(d, n);
        if (missing >= 0) {
            d->stack[d->depth++] = missing;
            continue;
        }
        d->depth--;
        if (!d->ran[n])
            run_on_demand(d, n);
    }
}

/* Nodes of the backward pass: they lead to an update, which metrics do not. */
static bool *mark_backward(Pool *pool, const RematProblem *p, const NodeGraph *g)
{
    bool *leads = POOL_ARRAY(pool, (size_t)p->n_nodes + 1, bool);
    for (int n = p->n_nodes - 1; n >= 0; n--) {
        leads[n] = p->node[n].n_overwrites > 0;
        for (int i = g->succ.begin[n]; i < g->succ.begin[n + 1]; i++)
            leads[n] |= leads[g->succ.item[i]];
    }
    for (int n = 0; n < p->n_nodes; n++)
        leads[n] &= !p->node[n].forward;
    return leads;
}

void reorder_on_demand(Pool *scratch, const RematProblem *p, const NodeGraph *g, int *order)
{
    Pool *pool = pool_new_child(scratch);
    size_t n = (size_t)p->n_nodes + 1;
    Demand d = {.p = p,
                .g = g,
                .waiting = POOL_ARRAY(pool, n, int),
                .looked_at = POOL_ARRAY(pool, n, int),
                .stack = POOL_ARRAY(pool, 2 * n, int),
                .ran = POOL_ARRAY(pool, n, bool),
                .order = order};
    const bool *backward = mark_backward(pool, p, g);
    for (int k = 0; k < p->n_nodes; k++)
        d.waiting[k] = csr_length(&g->pred, k);
    for (int k = 0; k < p->n_nodes; k++)
        if (backward[k])
            demand(&d, k);
    for (int k = 0; k < p->n_nodes; k++)
        if (!d.ran[k])
            demand(&d, k);
    pool_free(pool);
}
