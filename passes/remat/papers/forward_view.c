/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/remat/papers/forward_view.h"

#include "passes/remat/model/runs.h"

#include <string.h>

static int producer_in_view(const ForwardView *v, int tensor)
{
    int producer = v->p->tensor[tensor].producer;
    return producer < 0 ? -1 : v->index[producer];
}

/* Calls for every distinct edge of the view: `seen` remembers the last successor of each node. */
static int visit_edges(ForwardView *v, int *seen, bool store)
{
    int total = 0;
    memset(seen, -1, (size_t)v->n * sizeof *seen);
    for (int w = 0; w < v->n; w++) {
        const RematNode *node = &v->p->node[v->node[w]];
        for (int k = 0; k < node->n_in; k++) {
            int u = producer_in_view(v, node->in[k]);
            if (u < 0 || seen[u] == w)
                continue;
            seen[u] = w;
            total++;
            if (store) {
                csr_store(&v->pred, w, u);
                csr_store(&v->succ, u, w);
            } else {
                csr_count(&v->pred, w);
                csr_count(&v->succ, u);
            }
        }
    }
    return total;
}

static void find_nodes(Pool *pool, ForwardView *v)
{
    for (int n = 0; n < v->p->n_nodes; n++) {
        const RematNode *node = &v->p->node[n];
        v->index[n] = node->forward ? v->n : -1;
        if (!node->forward)
            continue;
        v->node[v->n] = n;
        v->cost[v->n] = node->cost;
        for (int k = 0; k < node->n_out; k++)
            v->bytes[v->n] += v->p->tensor[node->out[k]].bytes;
        v->n++;
    }
    int *seen = POOL_ARRAY(pool, (size_t)v->n + 1, int);
    v->pred = csr_new(pool, v->n);
    v->succ = csr_new(pool, v->n);
    int total = visit_edges(v, seen, false);
    csr_close(&v->pred, pool, total);
    csr_close(&v->succ, pool, total);
    visit_edges(v, seen, true);
}

/* Running statistics and metrics: fed by forward nodes only, and nothing comes of them in this
 * step.  Their reads belong to the forward pass. */
static bool *find_side_nodes(Pool *pool, const ForwardView *v)
{
    const RematProblem *p = v->p;
    bool *side = POOL_ARRAY(pool, (size_t)p->n_nodes + 1, bool);
    bool *read = POOL_ARRAY(pool, (size_t)p->n_tensors + 1, bool);
    for (int n = 0; n < p->n_nodes; n++)
        for (int k = 0; k < p->node[n].n_in; k++)
            read[p->node[n].in[k]] = true;
    for (int n = 0; n < p->n_nodes; n++) {
        const RematNode *node = &p->node[n];
        bool unread = true;
        for (int k = 0; k < node->n_out; k++)
            unread &= !read[node->out[k]];
        side[n] = !node->forward && (unread || node->n_overwrites > 0);
        for (int k = 0; k < node->n_in; k++) {
            int producer = p->tensor[node->in[k]].producer;
            side[n] &= producer < 0 || p->node[producer].forward || side[producer];
        }
    }
    return side;
}

static void find_turns(Pool *pool, ForwardView *v)
{
    const RematProblem *p = v->p;
    bool *side = find_side_nodes(pool, v);
    for (int t = 0; t < p->n_tensors; t++) {
        int producer = p->tensor[t].producer;
        v->turn[t] = producer >= 0 && p->node[producer].forward && p->node[producer].rerun &&
                             !v->late[producer]
                         ? producer
                         : -1;
    }
    for (int n = 0; n < p->n_nodes; n++)
        for (int k = 0; k < p->node[n].n_in; k++)
            if ((p->node[n].forward || side[n]) && v->turn[p->node[n].in[k]] >= 0)
                v->turn[p->node[n].in[k]] = n;
}

ForwardView *forward_view_new(Pool *pool, const RematProblem *p)
{
    ForwardView *v = POOL_NEW(pool, ForwardView);
    size_t n = (size_t)p->n_nodes + 1;
    v->p = p;
    v->node = POOL_ARRAY(pool, n, int);
    v->index = POOL_ARRAY(pool, n, int);
    v->cost = POOL_ARRAY(pool, n, double);
    v->bytes = POOL_ARRAY(pool, n, int64_t);
    v->turn = POOL_ARRAY(pool, (size_t)p->n_tensors + 1, int);
    v->late = update_nodes(pool, p);
    find_nodes(pool, v);
    find_turns(pool, v);
    return v;
}

ForwardGraph forward_view_graph(const ForwardView *v)
{
    return (ForwardGraph){
        .n = v->n, .time = v->cost, .bytes = v->bytes, .pred = v->pred, .succ = v->succ};
}

/* Building a schedule */

typedef struct Build {
    const ForwardView *v;
    const bool *keep;
    RunList list;   /* without late nodes */
    int *first_run; /* by node: position in the list */
} Build;

static bool is_dropped(const Build *b, int tensor, int at)
{
    int u = producer_in_view(b->v, tensor);
    return u >= 0 && b->v->turn[tensor] == at && !b->keep[u];
}

static void drop_after(Build *b, int node)
{
    const RematNode *x = &b->v->p->node[node];
    for (int k = 0; k < x->n_in; k++)
        if (is_dropped(b, x->in[k], node))
            b->list.gone[x->in[k]] = true;
    for (int k = 0; k < x->n_out; k++)
        if (is_dropped(b, x->out[k], node))
            b->list.gone[x->out[k]] = true;
}

static void run_all_but_late(Build *b)
{
    const RematProblem *p = b->v->p;
    for (int n = 0; n < p->n_nodes; n++) {
        if (!b->v->late[n]) {
            run_list_add(&b->list, n);
            b->first_run[n] = (int)b->list.runs.len - 1;
        }
        drop_after(b, n);
    }
}

/* Late nodes keep their place in the base order unless an old version is still to be read. */
static RematSchedule place_late(Pool *pool, const Build *b)
{
    int *floor = POOL_ARRAY(b->list.pool, (size_t)b->v->p->n_nodes + 1, int);
    for (int n = 0, previous = -1; n < b->v->p->n_nodes; n++) {
        if (!b->v->late[n])
            previous = b->first_run[n];
        floor[n] = previous;
    }
    return merge_late(pool, b->v->p, b->v->late, b->list.runs.data, (int)b->list.runs.len, floor);
}

RematSchedule forward_view_schedule(Pool *pool, const ForwardView *v, const bool *keep)
{
    Pool *scratch = pool_new_child(pool);
    Build b = {.v = v, .keep = keep, .list = run_list_new(scratch, v->p)};
    b.first_run = POOL_ARRAY(scratch, (size_t)v->p->n_nodes + 1, int);
    run_all_but_late(&b);
    RematSchedule s = place_late(pool, &b);
    pool_free(scratch);
    return s;
}
