/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Segments of roughly equal bytes, cut where few values cross.
 *
 * Source: Chen, Xu, Zhang, Guestrin 2016 (arXiv:1604.06174), algorithm 3 and its search over the
 * segment size b; split point candidates are the articulation points of the forward graph, as
 * Kusumoto et al. 2019 read it (appendix B).  Differs: a second family of cuts may fall after any
 * node (graphs with long skips have no articulation points), and what is kept at a cut is
 * everything that crosses it. */
#include "passes/remat/papers/chen.h"
#include "passes/remat/papers/candidates.h"
#include "passes/remat/papers/forward_view.h"
#include "passes/remat/solvers.h"

#include <math.h>

typedef struct Walk {
    int node, next; /* next: how many neighbours have been looked at */
} Walk;

static int neighbour(const ForwardGraph *v, int u, int k)
{
    int n_pred = csr_length(&v->pred, u);
    return k < n_pred ? v->pred.item[v->pred.begin[u] + k]
                      : v->succ.item[v->succ.begin[u] + k - n_pred];
}

/* Hopcroft and Tarjan 1973, without recursion, on the undirected graph.  O(V + E). */
static void find_articulation(Pool *pool, const ForwardGraph *v, bool *cut)
{
    int *depth = POOL_ARRAY(pool, (size_t)v->n + 1, int),
        *low = POOL_ARRAY(pool, (size_t)v->n + 1, int);
    int *parent = POOL_ARRAY(pool, (size_t)v->n + 1, int), top = 0;
    Walk *walk = POOL_ARRAY(pool, (size_t)v->n + 1, Walk);
    for (int root = 0; root < v->n; root++) {
        if (depth[root])
            continue;
        int root_children = 0;
        depth[root] = low[root] = 1;
        parent[root] = -1;
        walk[top++] = (Walk){root, 0};
        while (top > 0) {
            int u = walk[top - 1].node, k = walk[top - 1].next++;
            if (k < csr_length(&v->pred, u) + csr_length(&v->succ, u)) {
                int w = neighbour(v, u, k);
                if (!depth[w]) {
                    depth[w] = low[w] = depth[u] + 1;
                    parent[w] = u;
                    walk[top++] = (Walk){w, 0};
                } else if (w != parent[u] && depth[w] < low[u]) {
                    low[u] = depth[w];
                }
                continue;
            }
            top--;
            int up = parent[u];
            if (up < 0)
                continue;
            low[up] = low[u] < low[up] ? low[u] : low[up];
            root_children += up == root;
            cut[up] |= up != root && low[u] >= depth[up];
        }
        cut[root] = root_children > 1;
    }
}

static double total_bytes(const ForwardGraph *g)
{
    double total = 0;
    for (int u = 0; u < g->n; u++)
        total += (double)g->bytes[u];
    return total;
}

/* Algorithm 3: a segment ends at the first candidate after more than b bytes. */
static int cut_segments(const ForwardGraph *g, const bool *cut, double b, int *set_of)
{
    double bytes = 0;
    int set = 0;
    for (int u = 0; u < g->n; u++) {
        set_of[u] = set;
        bytes += (double)g->bytes[u];
        if (bytes <= b || (cut && !cut[u]))
            continue;
        bytes = 0;
        set++;
    }
    return set + (g->n > 0 && set_of[g->n - 1] == set);
}

typedef struct Cutting {
    const ForwardGraph *g;
    const bool *articulation;
    double total;
    int *set_of;
    ChenSeen *seen;
    void *user;
} Cutting;

static void try_size(const Cutting *c, double segments)
{
    double b = c->total / segments;
    c->seen(c->user, true, c->set_of, cut_segments(c->g, c->articulation, b, c->set_of));
    c->seen(c->user, false, c->set_of, cut_segments(c->g, NULL, b, c->set_of));
}

void chen_plan(Pool *pool, const ForwardGraph *g, ChenSeen *seen, void *user)
{
    Pool *scratch = pool_new_child(pool);
    bool *cut = POOL_ARRAY(scratch, (size_t)g->n + 1, bool);
    find_articulation(scratch, g, cut);
    Cutting c = {g, cut, total_bytes(g), POOL_ARRAY(scratch, (size_t)g->n + 1, int), seen, user};
    /* sqrt(n) segments, with which Chen's analysis ends, and from 2 to beyond that */
    double root = sqrt((double)g->n), most = 4 * root + 2;
    try_size(&c, root);
    for (double segments = 2; segments <= most; segments *= 1.3)
        try_size(&c, segments);
    pool_free(scratch);
}

static void try_sets(void *user, bool at_articulation, const int *set_of, int n_sets)
{
    (void)at_articulation;
    candidates_try_sets(user, set_of, n_sets);
}

RematStatus remat_chen(const RematProblem *p, const RematOptions *o, Pool *pool, RematSchedule *out)
{
    Pool *scratch = pool_new_child(pool);
    ForwardView *v = forward_view_new(scratch, p);
    ForwardGraph g = forward_view_graph(v);
    Candidates *c = candidates_new(scratch, v, o);
    chen_plan(scratch, &g, try_sets, c);
    RematStatus status = candidates_answer(c, pool, out);
    pool_free(scratch);
    return status;
}
