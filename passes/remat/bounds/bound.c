/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The bounds: each is the largest over the operations that are looked at. */
#include "passes/remat/bounds/bound.h"

#include "ir/support/clock.h"
#include "ir/support/sort.h"
#include "passes/remat/bounds/cut_relaxation.h"

#include <math.h>

/* Arcs of flow networks looked at, some 10^8 a second. */
static const int64_t MOST_WORK = 40000000;

typedef struct Search {
    Pool *pool;
    const RematProblem *p;
    CutProblem *problem;
    CutLimit limit;
    int64_t *keep_all; /* by node: no moment proves a larger peak */
    int *node;         /* the candidates */
    int n;
    int64_t *value; /* by candidate; -1 = not looked at */
    int64_t best, work;
    double until;
    int best_at; /* candidate, -1 = none */
} Search;

static Search *search_new(Pool *pool, const RematProblem *p, bool rerun, CutLimit limit,
                          double until)
{
    Search *s = POOL_NEW(pool, Search);
    size_t n = (size_t)p->n_nodes + 1;
    *s = (Search){.pool = pool, .p = p, .limit = limit, .best_at = -1};
    s->problem = cut_problem_new(pool, p, rerun);
    s->keep_all = cut_keep_all_bytes(pool, p);
    s->node = POOL_ARRAY(pool, n, int);
    s->value = POOL_ARRAY(pool, n, int64_t);
    s->until = until;
    return s;
}

static void add_candidate(Search *s, int node)
{
    s->value[s->n] = -1;
    s->node[s->n++] = node;
}

/* One look there always is. */
static bool is_over(const Search *s)
{
    return s->best_at >= 0 &&
           (s->work > MOST_WORK || (s->until > 0 && clock_seconds() >= s->until));
}

static void look_at(Search *s, int k)
{
    if (k < 0 || k >= s->n || s->value[k] >= 0 || is_over(s))
        return;
    Pool *pool = pool_new_child(s->pool);
    CutRelaxation *m = cut_relaxation_new(pool, s->problem, s->node[k]);
    CutLimit limit = s->limit;
    limit.keep_all = s->keep_all[s->node[k]];
    limit.good_enough = s->best;
    s->value[k] = cut_relaxation_bound(m, &limit, &s->work);
    s->work += flow_n_edges(m->net);
    if (s->value[k] > s->best || s->best_at < 0) {
        s->best = s->value[k];
        s->best_at = k;
        s->limit.price = limit.price; /* a good beginning for the next */
    }
    pool_free(pool);
}

enum { COARSE = 96, LEADERS = 6 };

/* The best candidates so far, best first; returns how many. */
static int find_leaders(const Search *s, int leader[LEADERS])
{
    int n = 0;
    for (int k = 0; k < s->n; k++) {
        if (s->value[k] < 0 || (n == LEADERS && s->value[k] <= s->value[leader[n - 1]]))
            continue;
        int i = n < LEADERS ? n++ : n - 1;
        for (; i > 0 && s->value[leader[i - 1]] < s->value[k]; i--)
            leader[i] = leader[i - 1];
        leader[i] = k;
    }
    return n;
}

/* Coarse to fine: neighbours in the order bound nearly the same. */
static void search_nearby(Search *s)
{
    int step = 1, leader[LEADERS];
    while (s->n / step > COARSE)
        step *= 2;
    for (int k = 0; k < s->n; k += step)
        look_at(s, k);
    for (; step > 1; step /= 2) {
        int n = find_leaders(s, leader);
        for (int i = 0; i < n; i++) {
            look_at(s, leader[i] - step / 2);
            look_at(s, leader[i] + step / 2);
        }
    }
}

double remat_overhead_lower_bound(const RematProblem *p, int64_t budget_bytes, Pool *scratch,
                                  double until, int *node_at)
{
    int forced_by;
    if (node_at)
        *node_at = -1;
    if (remat_peak_lower_bound(p, scratch, until, &forced_by) > budget_bytes) {
        if (node_at)
            *node_at = forced_by;
        return INFINITY;
    }
    Pool *pool = pool_new_child(scratch);
    Search *s = search_new(pool, p, true, (CutLimit){.limit = budget_bytes}, until);
    for (int n = 0; n < p->n_nodes; n++)
        if (s->keep_all[n] > budget_bytes)
            add_candidate(s, n);
    search_nearby(s);
    double time = 0;
    /* A little less than proven, so that sums of costs that were rounded on the way compare well.
     */
    if (s->best > 0)
        time = s->best == INT64_MAX ? (double)INFINITY
                                    : cut_cost(&s->problem->scale, s->best) * (1 - 1e-12);
    if (node_at && s->best > 0)
        *node_at = s->node[s->best_at];
    pool_free(pool);
    return time;
}

/* Peaks */

static int64_t operand_bytes(const RematProblem *p, const RematNode *node)
{
    int64_t bytes = node->workspace;
    for (int k = 0; k < node->n_in; k++)
        bytes += p->tensor[node->in[k]].persistent ? 0 : p->tensor[node->in[k]].bytes;
    for (int k = 0; k < node->n_out; k++)
        bytes += p->tensor[node->out[k]].persistent ? 0 : p->tensor[node->out[k]].bytes;
    return bytes;
}

/* With every recomputation allowed, nothing is forced but operands and what cannot be made again.
 * By the bytes at each node, the most first. */
static Ranked *find_reach(const Search *s)
{
    const RematProblem *p = s->p;
    int64_t once = 0;
    for (int x = 0; x < p->n_tensors; x++) {
        int producer = p->tensor[x].producer;
        if (p->tensor[x].persistent || producer < 0 || !cut_rerun(s->problem, producer) ||
            p->tensor[x].keep)
            once += p->tensor[x].bytes;
    }
    Ranked *reach = POOL_ARRAY(s->pool, (size_t)p->n_nodes + 1, Ranked);
    for (int n = 0; n < p->n_nodes; n++) {
        int64_t bytes = once + operand_bytes(p, &p->node[n]);
        bool any = s->problem->rerun && s->limit.limit == INT64_MAX;
        reach[n] = (Ranked){-(any && bytes < s->keep_all[n] ? bytes : s->keep_all[n]), n};
    }
    sort_ranked(reach, (size_t)p->n_nodes);
    return reach;
}

static void add_tensor(const RematProblem *p, RematPeakBound *bound, bool *listed, int x)
{
    if (listed[x] || p->tensor[x].persistent || p->tensor[x].bytes == 0)
        return;
    listed[x] = true;
    bound->tensor[bound->n_tensors++] = x;
}

static void sort_tensors(Pool *scratch, const RematProblem *p, RematPeakBound *bound)
{
    Ranked *x = POOL_ARRAY(scratch, (size_t)bound->n_tensors + 1, Ranked);
    for (int k = 0; k < bound->n_tensors; k++)
        x[k] = (Ranked){-p->tensor[bound->tensor[k]].bytes, bound->tensor[k]};
    sort_ranked(x, (size_t)bound->n_tensors);
    for (int k = 0; k < bound->n_tensors; k++)
        bound->tensor[k] = x[k].item;
}

/* What is in memory at the node: operands, what must be kept, and the cheapest choice of the rest.
 */
static void list_tensors(Search *s, Pool *pool, RematPeakBound *bound)
{
    const RematProblem *p = s->p;
    const RematNode *node = &p->node[bound->node];
    CutRelaxation *m = cut_relaxation_new(s->pool, s->problem, bound->node);
    bool *listed = POOL_ARRAY(s->pool, (size_t)p->n_tensors + 1, bool);
    bound->tensor = POOL_ARRAY(pool, (size_t)p->n_tensors + 1, int);
    cut_relaxation_cut(m, 0, 1, &s->work);
    for (int k = 0; k < node->n_in; k++)
        add_tensor(p, bound, listed, node->in[k]);
    for (int k = 0; k < node->n_in_place; k++) /* need no room of their own */
        listed[node->out[node->in_place[k].out]] = true;
    for (int k = 0; k < node->n_out && node->workspace >= 0; k++) /* else it takes them back */
        add_tensor(p, bound, listed, node->out[k]);
    for (int k = 0; k < m->n_kept; k++)
        add_tensor(p, bound, listed, m->kept[k]);
    for (int e = 0; e < flow_n_edges(m->net); e++)
        if (m->term[e].tensor >= 0 && flow_in_cut(m->net, e))
            add_tensor(p, bound, listed, m->term[e].tensor);
    sort_tensors(s->pool, p, bound);
}

/* One cut proves all that a moment can: the moments that could prove most go first, until the next
 * could not prove more. */
static void search_by_reach(Search *s)
{
    Ranked *reach = find_reach(s);
    for (int k = 0; k < s->p->n_nodes; k++) {
        if (s->best_at >= 0 && (-reach[k].key <= s->best || is_over(s)))
            return;
        add_candidate(s, reach[k].item);
        look_at(s, s->n - 1);
    }
}

RematPeakBound remat_peak_bound_under_time(Pool *pool, const RematProblem *p, double extra_time,
                                           double until)
{
    RematPeakBound bound = {p->persistent_bytes, -1, NULL, 0};
    Pool *scratch = pool_new_child(pool);
    CutLimit limit = {.on_time = true, .limit = INT64_MAX};
    Search *s = search_new(scratch, p, extra_time > 0, limit, until);
    double units = cut_units(&s->problem->scale, extra_time);
    if (units > 0 && units < 0x1p60) {
        s->limit.limit = (int64_t)units;
        for (int n = 0; n < p->n_nodes; n++)
            add_candidate(s, n);
        search_nearby(s);
    } else {
        search_by_reach(s);
    }
    if (s->best_at >= 0) {
        bound.bytes = s->best;
        bound.node = s->node[s->best_at];
        list_tensors(s, pool, &bound);
    }
    pool_free(scratch);
    return bound;
}

int64_t remat_peak_lower_bound(const RematProblem *p, Pool *scratch, double until, int *node_at)
{
    Pool *pool = pool_new_child(scratch);
    RematPeakBound bound = remat_peak_bound_under_time(pool, p, INFINITY, until);
    *node_at = bound.node;
    pool_free(pool);
    return bound.bytes;
}
