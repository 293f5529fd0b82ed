/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Candidate orders: base, updates first, eager freeing, least peak increase, depth first; on
 * demand (on_demand.c).
 *
 * Weight gradients need no rule of their own: one whose bytes are below those of the activations
 * that die with it frees memory, so eager freeing runs it before the input gradient, and later
 * otherwise. */
#include "passes/remat/order/reorder.h"

#include "ir/support/clock.h"
#include "passes/remat/model/readers.h"
#include "passes/remat/model/schedule.h"

#include <float.h>
#include <string.h>

typedef void EdgeVisit(NodeGraph *g, int from, int to);

static void visit_edges(const RematProblem *p, NodeGraph *g, EdgeVisit *visit)
{
    for (int n = 0; n < p->n_nodes; n++) {
        const RematNode *node = &p->node[n];
        for (int k = 0; k < node->n_in; k++)
            if (p->tensor[node->in[k]].producer >= 0)
                visit(g, p->tensor[node->in[k]].producer, n);
        for (int k = 0; k < node->n_overwrites; k++) {
            int t = node->overwrites[k];
            for (int r = g->readers.begin[t]; r < g->readers.begin[t + 1]; r++)
                if (g->readers.item[r] != n)
                    visit(g, g->readers.item[r], n);
            if (p->tensor[t].producer >= 0)
                visit(g, p->tensor[t].producer, n);
        }
    }
}

static void count_edge(NodeGraph *g, int from, int to)
{
    csr_count(&g->succ, from);
    csr_count(&g->pred, to);
}

static void store_edge(NodeGraph *g, int from, int to)
{
    csr_store(&g->succ, from, to);
    csr_store(&g->pred, to, from);
}

NodeGraph *node_graph_new(Pool *pool, const RematProblem *p)
{
    NodeGraph *g = POOL_NEW(pool, NodeGraph);
    g->readers = remat_readers(pool, p);
    g->pred = csr_new(pool, p->n_nodes);
    g->succ = csr_new(pool, p->n_nodes);
    visit_edges(p, g, count_edge);
    int total = 0;
    for (int n = 0; n < p->n_nodes; n++)
        total += g->pred.begin[n + 2];
    csr_close(&g->pred, pool, total);
    csr_close(&g->succ, pool, total);
    visit_edges(p, g, store_edge);
    return g;
}

/* List scheduling */

typedef enum Policy { UPDATES_FIRST, EAGER_FREE, LEAST_PEAK, UNDER_CAP } Policy;

/* How many ready nodes, in base order, a greedy choice looks at: keeps wide graphs linear. */
enum { MAX_LOOKED_AT = 256 };

/* Choices between two looks at the clock: about a millisecond in wide graphs. */
enum { CHOICES_A_LOOK = 64 };

/* Caps tried between the best peak found and the bound. */
enum { CAPS = 4 };

typedef struct ListScheduler {
    const RematProblem *p;
    const NodeGraph *g;
    Policy policy;
    int *waiting;  /* by node: predecessors that have not run */
    int *left;     /* by tensor: readers that have not run */
    int *priority; /* by node: its position in the order that decides between equals */
    int *ready;    /* by priority */
    int n_ready;
    int64_t alive, peak, cap;
} ListScheduler;

typedef struct Effect {
    int64_t transient, net; /* bytes above what is alive: while it runs, afterwards */
} Effect;

static bool dies_with(const ListScheduler *s, int tensor)
{
    const RematTensor *t = &s->p->tensor[tensor];
    return s->left[tensor] == 1 && !t->persistent && !t->keep;
}

static bool is_merged(const ListScheduler *s, const RematNode *node, int out)
{
    for (int k = 0; k < node->n_in_place; k++)
        if (node->in_place[k].out == out && dies_with(s, node->in[node->in_place[k].in]))
            return true;
    return false;
}

/* The edges from pred to n stand in both their rows: the shorter one is looked at, because a node
 * may have a great many of either. */
static bool waits_only_for(const ListScheduler *s, int n, int pred)
{
    const Csr *of = &s->g->pred;
    int row = n, other = pred, waiting = s->waiting[n];
    if (csr_length(&s->g->succ, pred) < csr_length(of, n)) {
        of = &s->g->succ;
        row = pred;
        other = n;
    }
    if (waiting > csr_length(of, row))
        return false;
    for (int k = of->begin[row]; k < of->begin[row + 1]; k++)
        waiting -= of->item[k] == other;
    return waiting == 0;
}

bool node_makes_little(const RematProblem *p, int n, int64_t against)
{
    int64_t bytes = 0;
    for (int k = 0; k < p->node[n].n_out; k++)
        bytes += p->tensor[p->node[n].out[k]].bytes;
    return bytes <= against / 8;
}

/* Running n makes everything that reads tensor ready, and that makes little: the tensor need not
 * stay. */
static bool passes_through(const ListScheduler *s, int n, int tensor)
{
    const Csr *readers = &s->g->readers;
    for (int r = readers->begin[tensor]; r < readers->begin[tensor + 1]; r++)
        if (!waits_only_for(s, readers->item[r], n) ||
            !node_makes_little(s->p, readers->item[r], s->p->tensor[tensor].bytes))
            return false;
    return !s->p->tensor[tensor].keep;
}

static Effect effect_of(const ListScheduler *s, int n)
{
    const RematNode *node = &s->p->node[n];
    Effect e = {node->workspace, 0};
    for (int k = 0; k < node->n_out; k++) {
        const RematTensor *t = &s->p->tensor[node->out[k]];
        e.transient += is_merged(s, node, k) ? 0 : t->bytes;
        e.net += s->left[node->out[k]] > 0 || t->keep ? t->bytes : 0;
    }
    for (int k = 0; k < node->n_in; k++)
        if (dies_with(s, node->in[k]))
            e.net -= s->p->tensor[node->in[k]].bytes;
    return e;
}

/* What n frees when the updates that it makes possible follow at once. */
static int64_t net_with_followers(const ListScheduler *s, int n, Effect e)
{
    for (int k = 0; k < s->p->node[n].n_out; k++)
        if (passes_through(s, n, s->p->node[n].out[k]))
            e.net -= s->p->tensor[s->p->node[n].out[k]].bytes;
    return e.net;
}

/* The gradient of a weight that others still have to read: its update would have to wait, and it
 * with it. */
static bool is_too_early(const ListScheduler *s, int n)
{
    for (int k = 0; k < s->p->node[n].n_out; k++) {
        int t = s->p->node[n].out[k];
        for (int r = s->g->readers.begin[t]; r < s->g->readers.begin[t + 1]; r++) {
            const RematNode *update = &s->p->node[s->g->readers.item[r]];
            for (int i = 0; i < update->n_overwrites; i++)
                if (s->left[update->overwrites[i]] > 1)
                    return true;
        }
    }
    return false;
}

static int64_t peak_with(const ListScheduler *s, Effect e)
{
    int64_t peak = s->alive + e.transient;
    return peak > s->peak ? peak : s->peak;
}

/* Smaller is better, part by part. */
typedef struct Rank {
    int64_t first, second;
} Rank;

static Rank rank_of(const ListScheduler *s, int n)
{
    if (s->policy == UPDATES_FIRST)
        return (Rank){s->p->node[n].n_overwrites > 0 ? 0 : 1, 0};
    Effect e = effect_of(s, n);
    int64_t peak = peak_with(s, e), net = net_with_followers(s, n, e);
    if (s->policy == LEAST_PEAK)
        return (Rank){peak, net};
    int64_t freeing = net < 0 ? net : net == 0 ? -1 : is_too_early(s, n) ? 1 : 0;
    if (s->policy == UNDER_CAP && peak > s->cap)
        return (Rank){peak, freeing};
    return (Rank){0, freeing};
}

/* Position in ready[] of the node to run next; ready[0] has the first priority and wins ties.
 */
static int choose_ready(const ListScheduler *s)
{
    int best = 0, looked_at = s->n_ready < MAX_LOOKED_AT ? s->n_ready : MAX_LOOKED_AT;
    Rank least = rank_of(s, s->ready[0]);
    for (int k = 1; k < looked_at; k++) {
        Rank r = rank_of(s, s->ready[k]);
        if (r.first < least.first || (r.first == least.first && r.second < least.second)) {
            best = k;
            least = r;
        }
    }
    return best;
}

static void add_ready(ListScheduler *s, int n)
{
    int k = s->n_ready++;
    for (; k > 0 && s->priority[s->ready[k - 1]] > s->priority[n]; k--)
        s->ready[k] = s->ready[k - 1];
    s->ready[k] = n;
}

static void run_ready(ListScheduler *s, int k)
{
    int n = s->ready[k];
    Effect e = effect_of(s, n);
    s->peak = peak_with(s, e);
    s->alive += e.net;
    memmove(s->ready + k, s->ready + k + 1, (size_t)(s->n_ready - k - 1) * sizeof *s->ready);
    s->n_ready--;
    for (int i = 0; i < s->p->node[n].n_in; i++)
        s->left[s->p->node[n].in[i]]--;
    for (int i = s->g->succ.begin[n]; i < s->g->succ.begin[n + 1]; i++)
        if (--s->waiting[s->g->succ.item[i]] == 0)
            add_ready(s, s->g->succ.item[i]);
}

static int64_t bytes_before(const RematProblem *p)
{
    int64_t bytes = 0;
    for (int t = 0; t < p->n_tensors; t++)
        bytes += p->tensor[t].producer < 0 ? p->tensor[t].bytes : 0;
    return bytes;
}

/* False, and order[] incomplete, when time is up. */
static bool list_schedule(Pool *scratch, const RematProblem *p, const NodeGraph *g, Policy policy,
                          int64_t cap, double until, const int *base, int *order)
{
    Pool *pool = pool_new_child(scratch);
    ListScheduler s = {.p = p, .g = g, .policy = policy, .cap = cap, .alive = bytes_before(p)};
    s.peak = s.alive;
    s.waiting = POOL_ARRAY(pool, (size_t)p->n_nodes + 1, int);
    s.left = POOL_ARRAY(pool, (size_t)p->n_tensors + 1, int);
    s.ready = POOL_ARRAY(pool, (size_t)p->n_nodes + 1, int);
    s.priority = POOL_ARRAY(pool, (size_t)p->n_nodes + 1, int);
    for (int t = 0; t < p->n_tensors; t++)
        s.left[t] = csr_length(&g->readers, t);
    for (int k = 0; k < p->n_nodes; k++) {
        s.priority[base[k]] = k;
        s.waiting[base[k]] = csr_length(&g->pred, base[k]);
        if (s.waiting[base[k]] == 0)
            s.ready[s.n_ready++] = base[k];
    }
    bool in_time = true;
    for (int k = 0; k < p->n_nodes && in_time; k++) {
        int choice = choose_ready(&s);
        order[k] = s.ready[choice];
        run_ready(&s, choice);
        in_time = (k + 1) % CHOICES_A_LOOK != 0 || !reorder_out_of_time(until);
    }
    pool_free(pool);
    return in_time;
}

/* Nodes in the order in which a depth-first walk from the sinks, first sink first, leaves them. */
static void depth_first(Pool *scratch, const RematProblem *p, const NodeGraph *g, int *order)
{
    Pool *pool = pool_new_child(scratch);
    int *stack = POOL_ARRAY(pool, (size_t)p->n_nodes + 1, int), depth = 0, n_done = 0;
    int *next = POOL_ARRAY(pool, (size_t)p->n_nodes + 1, int); /* next predecessor to visit */
    bool *seen = POOL_ARRAY(pool, (size_t)p->n_nodes + 1, bool);
    for (int sink = 0; sink < p->n_nodes; sink++) {
        if (csr_length(&g->succ, sink) > 0)
            continue;
        seen[sink] = true;
        stack[depth++] = sink;
        while (depth > 0) {
            int n = stack[depth - 1];
            if (next[n] == csr_length(&g->pred, n)) {
                order[n_done++] = n;
                depth--;
                continue;
            }
            int pred = g->pred.item[g->pred.begin[n] + next[n]++];
            if (!seen[pred]) {
                seen[pred] = true;
                stack[depth++] = pred;
            }
        }
    }
    pool_free(pool);
}

/* Recomputation can drop it between the forward pass and the backward pass. */
static bool can_return(const RematProblem *p, int tensor)
{
    int producer = p->tensor[tensor].producer;
    return producer >= 0 && p->node[producer].forward && p->node[producer].rerun;
}

/* Orders often meet at the same peak and differ elsewhere, which matters once recomputation lowers
 * the peak: the sum of bytes over the runs that they are alive tells those apart.  An activation
 * counts while the forward pass needs it only: with it in the sum, an order that ran all weight
 * gradients at the end and kept all gradients of activations until then looked good. */
static double byte_runs(Pool *scratch, const RematProblem *p, const int *order)
{
    Pool *pool = pool_new_child(scratch);
    int *made = POOL_ARRAY(pool, (size_t)p->n_tensors + 1, int);
    int *last = POOL_ARRAY(pool, (size_t)p->n_tensors + 1, int);
    double sum = 0;
    for (int i = 0; i < p->n_nodes; i++) {
        const RematNode *node = &p->node[order[i]];
        for (int k = 0; k < node->n_out; k++)
            made[node->out[k]] = last[node->out[k]] = i;
        for (int k = 0; k < node->n_in; k++)
            if (node->forward || !can_return(p, node->in[k]))
                last[node->in[k]] = i;
    }
    for (int t = 0; t < p->n_tensors; t++)
        sum += (double)p->tensor[t].bytes * (last[t] - made[t]);
    pool_free(pool);
    return sum;
}

typedef struct Best {
    RematSchedule schedule;
    int64_t peak;
    double byte_runs;
    double until; /* no other is tried after it */
} Best;

static void consider(Pool *scratch, const RematProblem *p, const int *order, Best *best)
{
    RematSchedule s = {p->n_nodes, POOL_ARRAY(scratch, (size_t)p->n_nodes + 1, int)};
    memcpy(s.node, order, (size_t)p->n_nodes * sizeof *order);
    RematFigures f = remat_check(scratch, p, &s);
    double sum = byte_runs(scratch, p, order);
    if (!f.ok || f.peak_bytes > best->peak ||
        (f.peak_bytes == best->peak && sum >= best->byte_runs))
        return;
    best->peak = f.peak_bytes;
    best->byte_runs = sum;
    memcpy(best->schedule.node, order, (size_t)p->n_nodes * sizeof *order);
}

bool reorder_out_of_time(double until)
{
    return until > 0 && clock_seconds() >= until;
}

/* Each replaces the best order when it is better, until time is up. */
static void try_policies(Pool *scratch, const RematProblem *p, const NodeGraph *g, Best *best)
{
    int *base = remat_base_schedule(scratch, p).node;
    int *order = POOL_ARRAY(scratch, (size_t)p->n_nodes + 1, int);
    static const Policy policies[] = {UPDATES_FIRST, EAGER_FREE, LEAST_PEAK};
    for (size_t k = 0; k < 3; k++)
        if (list_schedule(scratch, p, g, policies[k], INT64_MAX, best->until, base, order))
            consider(scratch, p, order, best);
    if (reorder_out_of_time(best->until))
        return;
    depth_first(scratch, p, g, order);
    consider(scratch, p, order, best);
}

static void try_caps(Pool *scratch, const RematProblem *p, const NodeGraph *g, int64_t enough,
                     Best *best)
{
    int *base = POOL_ARRAY(scratch, (size_t)p->n_nodes + 1, int);
    int *order = POOL_ARRAY(scratch, (size_t)p->n_nodes + 1, int);
    for (int k = 0; k <= CAPS && !reorder_out_of_time(best->until); k++) {
        int64_t cap = best->peak - (best->peak - enough) * k / CAPS;
        memcpy(base, best->schedule.node, (size_t)p->n_nodes * sizeof *base);
        if (list_schedule(scratch, p, g, UNDER_CAP, cap, best->until, base, order))
            consider(scratch, p, order, best);
    }
}

/* Where it has a smaller peak than all of these: with an equal one, recomputation makes less of it.
 */
static void try_on_demand(Pool *scratch, const RematProblem *p, const NodeGraph *g, int64_t enough,
                          Best *best)
{
    if (reorder_out_of_time(best->until))
        return;
    Best smaller = {.schedule = best->schedule, .peak = best->peak - 1, .byte_runs = DBL_MAX};
    int *order = POOL_ARRAY(scratch, (size_t)p->n_nodes + 1, int);
    reorder_on_demand(scratch, p, g, order);
    smaller.until = best->until;
    consider(scratch, p, order, &smaller);
    if (smaller.byte_runs == DBL_MAX)
        return;
    *best = smaller;
    try_caps(scratch, p, g, enough, best);
}

RematSchedule reorder_nodes(Pool *pool, const RematProblem *p, int64_t good_enough_bytes,
                            double until)
{
    Pool *scratch = pool_new_child(pool);
    NodeGraph *g = node_graph_new(scratch, p);
    Best best = {.schedule = remat_base_schedule(pool, p), .peak = INT64_MAX, .until = until};
    consider(scratch, p, best.schedule.node, &best);
    try_policies(scratch, p, g, &best);
    int64_t bound = reorder_bound(scratch, p, g);
    int64_t enough = bound > good_enough_bytes ? bound : good_enough_bytes;
    try_caps(scratch, p, g, enough, &best);
    try_on_demand(scratch, p, g, enough, &best);
    reorder_windows(scratch, p, g, &best.schedule, enough, until);
    pool_free(scratch);
    return best.schedule;
}
