/* Candidate orders: base, updates first, eager freeing, least peak increase, depth first.
 *
 * Weight gradients need no rule of their own: one whose bytes are below those of the activations
 * that die with it frees memory, so eager freeing runs it before the input gradient, and later
 * otherwise. */
#include "passes/remat/reorder.h"

#include "passes/remat/solvers.h"

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

static void find_readers(Pool *pool, const RematProblem *p, Csr *readers)
{
    int total = 0;
    *readers = csr_new(pool, p->n_tensors);
    for (int n = 0; n < p->n_nodes; n++)
        for (int k = 0; k < p->node[n].n_in; k++, total++)
            csr_count(readers, p->node[n].in[k]);
    csr_close(readers, pool, total);
    for (int n = 0; n < p->n_nodes; n++)
        for (int k = 0; k < p->node[n].n_in; k++)
            csr_store(readers, p->node[n].in[k], n);
}

NodeGraph *node_graph_new(Pool *pool, const RematProblem *p)
{
    NodeGraph *g = POOL_NEW(pool, NodeGraph);
    find_readers(pool, p, &g->readers);
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

typedef enum Policy { UPDATES_FIRST, EAGER_FREE, LEAST_PEAK } Policy;

/* How many ready nodes, in base order, a greedy choice looks at: keeps wide graphs linear. */
enum { MAX_LOOKED_AT = 256 };

typedef struct ListScheduler {
    const RematProblem *p;
    const NodeGraph *g;
    Policy policy;
    int *waiting; /* by node: predecessors that have not run */
    int *left;    /* by tensor: readers that have not run */
    int *ready;   /* ascending */
    int n_ready;
    int64_t alive, peak;
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

static int64_t peak_with(const ListScheduler *s, Effect e)
{
    int64_t peak = s->alive + e.transient;
    return peak > s->peak ? peak : s->peak;
}

/* Position in ready[] of the node to run next; ready[0] is the first in base order. */
static int choose_ready(const ListScheduler *s)
{
    int best = 0, looked_at = s->n_ready < MAX_LOOKED_AT ? s->n_ready : MAX_LOOKED_AT;
    int64_t best_peak = INT64_MAX, best_net = s->policy == EAGER_FREE ? 1 : INT64_MAX;
    for (int k = 0; k < looked_at; k++) {
        if (s->policy == UPDATES_FIRST) {
            if (s->p->node[s->ready[k]].n_overwrites > 0)
                return k;
            continue;
        }
        Effect e = effect_of(s, s->ready[k]);
        int64_t peak = s->policy == LEAST_PEAK ? peak_with(s, e) : 0;
        if (peak > best_peak || (peak == best_peak && e.net >= best_net) ||
            (s->policy == EAGER_FREE && e.net >= best_net))
            continue;
        best = k;
        best_peak = peak;
        best_net = e.net;
    }
    return best;
}

static void add_ready(ListScheduler *s, int n)
{
    int k = s->n_ready++;
    for (; k > 0 && s->ready[k - 1] > n; k--)
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

static void list_schedule(Pool *scratch, const RematProblem *p, const NodeGraph *g, Policy policy,
                          int *order)
{
    Pool *pool = pool_new_child(scratch);
    ListScheduler s = {.p = p, .g = g, .policy = policy};
    s.waiting = POOL_ARRAY(pool, (size_t)p->n_nodes + 1, int);
    s.left = POOL_ARRAY(pool, (size_t)p->n_tensors + 1, int);
    s.ready = POOL_ARRAY(pool, (size_t)p->n_nodes + 1, int);
    for (int t = 0; t < p->n_tensors; t++)
        s.left[t] = csr_length(&g->readers, t);
    for (int n = 0; n < p->n_nodes; n++) {
        s.waiting[n] = csr_length(&g->pred, n);
        if (s.waiting[n] == 0)
            s.ready[s.n_ready++] = n;
    }
    for (int k = 0; k < p->n_nodes; k++) {
        int choice = choose_ready(&s);
        order[k] = s.ready[choice];
        run_ready(&s, choice);
    }
    pool_free(pool);
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

/* Orders often meet at the same peak and differ elsewhere, which matters once recomputation lowers the peak: the
 * sum of bytes over the runs that they are alive tells those apart. */
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

RematSchedule reorder_nodes(Pool *pool, const RematProblem *p, int64_t good_enough_bytes)
{
    Pool *scratch = pool_new_child(pool);
    NodeGraph *g = node_graph_new(scratch, p);
    Best best = {.schedule = remat_base_schedule(pool, p), .peak = INT64_MAX};
    consider(scratch, p, best.schedule.node, &best);
    int *order = POOL_ARRAY(scratch, (size_t)p->n_nodes + 1, int);
    static const Policy policies[] = {UPDATES_FIRST, EAGER_FREE, LEAST_PEAK};
    for (size_t k = 0; k < 3 && best.peak > good_enough_bytes; k++) {
        list_schedule(scratch, p, g, policies[k], order);
        consider(scratch, p, order, &best);
    }
    if (best.peak > good_enough_bytes) {
        depth_first(scratch, p, g, order);
        consider(scratch, p, order, &best);
        int64_t bound = reorder_bound(scratch, p, g);
        reorder_windows(scratch, p, g, &best.schedule,
                        bound > good_enough_bytes ? bound : good_enough_bytes);
    }
    pool_free(scratch);
    return best.schedule;
}
