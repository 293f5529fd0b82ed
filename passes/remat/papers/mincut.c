/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One bit per forward node, saved or recomputed, by minimum cuts.
 *
 * Source: PyTorch's min_cut_rematerialization_partition (functorch partitioners.py; H. He and S.
 * Yan 2022): every forward value is two vertices with an edge of its bytes between them, edges
 * without end lead to its users, what the backward part needs is tied to the sink, what must not be
 * recomputed to the source; the cut is what is saved.  A saved value is one that is there when the
 * backward part begins; everything else that it needs is computed again from those.
 *
 * Differs: PyTorch recomputes whatever fuses and saves the rest, since it aims at speed; there is
 * no budget.  Here a recomputation has the price of its time: an edge from the source, by a price
 * of memory that is swept, so that each price gives the cheapest trade of time for bytes summed
 * over all values.  Of the first kind there are four cuts, in which what takes more than so much
 * time per byte counts as not fusible and is saved (problems do not say what fuses).  Bytes saved
 * are not the peak: pruning and the replay decide about the answers. */
#include "passes/remat/bounds/max_flow.h"
#include "passes/remat/model/runs.h"
#include "passes/remat/papers/candidates.h"
#include "passes/remat/solvers.h"

#include <math.h>
#include <stdlib.h>

/* Capacities: the dearer of all bytes and all time is this many units. */
static const double UNITS = 1e12;
enum { PRICES = 24, PRUNE_STEPS = 4 };

typedef struct Cut {
    const ForwardView *v;
    FlowNetwork *net;
    int *save, *again; /* by view node: edges */
    int source, sink;
    double bytes, time; /* of all nodes */
    int64_t work;
} Cut;

/* View nodes with a value that is read after its last forward use. */
static bool *find_needed(Pool *pool, const ForwardView *v)
{
    bool *needed = POOL_ARRAY(pool, (size_t)v->n + 1, bool);
    for (int n = 0; n < v->p->n_nodes; n++)
        for (int k = 0; k < v->p->node[n].n_in && v->index[n] < 0; k++) {
            int t = v->p->node[n].in[k], producer = v->p->tensor[t].producer;
            if (producer >= 0 && v->index[producer] >= 0 && v->turn[t] < n)
                needed[v->index[producer]] = true;
        }
    return needed;
}

static int edge(Cut *c, int from, int to, int64_t capacity)
{
    int e = flow_edge(c->net, from, to);
    flow_set_capacity(c->net, e, capacity);
    return e;
}

/* Vertices 2u and 2u + 1: u's inputs are there, u's value is. */
static void build(Cut *c, Pool *pool)
{
    const ForwardView *v = c->v;
    bool *needed = find_needed(pool, v);
    c->net = flow_new(pool);
    c->save = POOL_ARRAY(pool, (size_t)v->n + 1, int);
    c->again = POOL_ARRAY(pool, (size_t)v->n + 1, int);
    for (int k = 0; k < 2 * v->n; k++)
        flow_vertex(c->net);
    c->source = flow_vertex(c->net);
    c->sink = flow_vertex(c->net);
    for (int u = 0; u < v->n; u++) {
        c->bytes += (double)v->bytes[u];
        c->time += v->cost[u];
        c->save[u] = flow_edge(c->net, 2 * u, 2 * u + 1);
        c->again[u] = flow_edge(c->net, c->source, 2 * u);
        for (int k = v->pred.begin[u]; k < v->pred.begin[u + 1]; k++)
            edge(c, 2 * v->pred.item[k] + 1, 2 * u, FLOW_INFINITE);
        if (needed[u])
            edge(c, 2 * u + 1, c->sink, FLOW_INFINITE);
    }
}

/* The cut for the price of all bytes in units of all time; a node with more time per byte than
 * `fusible` times the average counts as not fusible.  pure: time has no other price. */
static void cut(Cut *c, double price, bool pure, double fusible, bool *keep)
{
    const ForwardView *v = c->v;
    double bytes = c->bytes > 0 ? c->bytes : 1, time = c->time > 0 ? c->time : 1;
    double most = price > 1 ? price : 1;
    for (int u = 0; u < v->n; u++) {
        const RematNode *node = &v->p->node[v->node[u]];
        double part = v->cost[u] / time, size = (double)v->bytes[u] / bytes;
        bool fixed = !is_repeatable(v->p, v->late, v->node[u]) || (pure && part > fusible * size);
        int64_t save = (int64_t)(UNITS * size * price / most) + 1;
        int64_t again = pure ? 1 : (int64_t)(UNITS * part / most) + 1;
        bool forced = !fixed && node->hint == REMAT_RECOMPUTE;
        flow_set_capacity(c->net, c->save[u], forced ? FLOW_INFINITE : save);
        flow_set_capacity(c->net, c->again[u], fixed ? FLOW_INFINITE : again);
    }
    flow_max(c->net, c->source, c->sink, &c->work);
    for (int u = 0; u < v->n; u++)
        keep[u] = !flow_in_cut(c->net, c->again[u]);
}

static void try_keep(Candidates *c, const bool *keep)
{
    Pool *once = pool_new_child(c->pool);
    RematSchedule s = forward_view_schedule(once, c->view, keep);
    candidates_try(c, keep);
    candidates_try_runs(c, c->view->late, s.node, s.len, PRUNE_STEPS);
    pool_free(once);
}

RematStatus remat_mincut(const RematProblem *p, const RematOptions *o, Pool *pool,
                         RematSchedule *out)
{
    static const double fusible[] = {0.25, 1, 4, INFINITY};
    Pool *scratch = pool_new_child(pool);
    ForwardView *v = forward_view_new(scratch, p);
    Candidates *c = candidates_new(scratch, v, o);
    Cut x = {.v = v};
    bool *keep = POOL_ARRAY(scratch, (size_t)v->n + 1, bool), all = true;
    build(&x, scratch);
    for (int k = 0; k < 4 + PRICES && v->n > 0 && all; k++) {
        if (k < 4)
            cut(&x, 1, true, fusible[k], keep);
        else
            cut(&x, pow(2, (k - 4 - PRICES / 2) * 0.75), false, 0, keep);
        try_keep(c, keep);
        all = !remat_out_of_time(o);
    }
    RematStatus status = candidates_answer(c, pool, out);
    pool_free(scratch);
    return status == REMAT_INFEASIBLE && !all ? REMAT_LIMIT : status;
}
