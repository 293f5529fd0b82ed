/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Small problems exactly: the front of all schedules, in any order, with any recomputations.
 *
 * A* over labels (what has run, what is in memory, time so far, largest peak so far), the least
 * time that is still possible first: the costs of what has not run yet.  A label is not followed
 * when the front has an answer that needs neither more time nor more memory than it will, or when
 * one with the same sets came before it and had no larger peak.  The search therefore ends with
 * every point of the front, or gives up at a limit.
 *
 * A value dies when a node has read or made it or never, so each run branches over which of its
 * operands die.  A node runs again only after all its values have died: an earlier death costs
 * nothing. */
#include "ir/support/heap.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/model/solver.h"
#include "passes/remat/search/lns.h"

#include <string.h>

enum { MOST_NODES = 14, MOST_TENSORS = 64, MOST_OPERANDS = 10, MOST_LABELS = 1 << 19 };
enum { FIRST_TABLE = 1 << 10 };

typedef struct Label {
    uint64_t ran, live; /* by node; by tensor: what is in memory, persistent ones left out */
    double rest;        /* time once of what has not run */
    double time;        /* so far */
    int64_t peak_bytes; /* so far, at least the bound */
    int parent, node;
} Label;

typedef struct Settled { /* the least peak with which these sets were left; ran 0: free */
    uint64_t ran, live;
    int64_t peak_bytes;
} Settled;

typedef struct Exact {
    LargeNeighbourhoodSearch *l;
    const RematProblem *p;
    Pool *pool;
    VEC(Label) labels;
    VEC(int) heap;    /* of labels */
    Settled *settled; /* a hash table, at most half full */
    size_t n_settled, table_size;
    uint64_t *reads, *makes; /* by node: tensors that are not persistent */
    uint64_t unread;         /* inputs of the batch that nothing reads: die after the first run */
    uint64_t keep;
    int64_t least_bytes; /* no schedule has a smaller peak */
} Exact;

/* The label of least time in the end, then of least peak, then the first. */
static bool goes_before(const Exact *x, int a, int b)
{
    const Label *p = &x->labels.data[a], *q = &x->labels.data[b];
    if (p->time + p->rest != q->time + q->rest)
        return p->time + p->rest < q->time + q->rest;
    return p->peak_bytes != q->peak_bytes ? p->peak_bytes < q->peak_bytes : a < b;
}

HEAP_DEFINE(labels, const Exact, int, goes_before, HEAP_UNTOLD)

static void push_label(Exact *x, Label label)
{
    int added = (int)x->labels.len;
    vec_push(x->pool, &x->labels, label);
    vec_push(x->pool, &x->heap, added);
    labels_up(x, x->heap.data, x->heap.len - 1);
}

static Settled *settled_slot(const Exact *x, uint64_t ran, uint64_t live)
{
    uint64_t hash = (ran * 0x9e3779b97f4a7c15u ^ live) * 0xbf58476d1ce4e5b9u;
    size_t i = (size_t)(hash >> 32) % x->table_size;
    while (x->settled[i].ran && (x->settled[i].ran != ran || x->settled[i].live != live))
        i = (i + 1) % x->table_size;
    return &x->settled[i];
}

static bool is_dominated(const Exact *x, const Label *label)
{
    const Settled *s = settled_slot(x, label->ran, label->live);
    return (s->ran && s->peak_bytes <= label->peak_bytes) ||
           !pareto_takes(x->l->front, label->peak_bytes, label->time + label->rest);
}

static void settle(Exact *x, const Label *label)
{
    if (2 * x->n_settled >= x->table_size) {
        Settled *old = x->settled;
        size_t n = x->table_size;
        x->table_size *= 2;
        x->settled = POOL_ARRAY(x->pool, x->table_size, Settled);
        for (size_t i = 0; i < n; i++)
            if (old[i].ran)
                *settled_slot(x, old[i].ran, old[i].live) = old[i];
    }
    Settled *s = settled_slot(x, label->ran, label->live);
    x->n_settled += s->ran == 0;
    *s = (Settled){label->ran, label->live, label->peak_bytes};
}

/* Bytes in memory while the node runs and `dies` die there, as remat_check counts them. */
static int64_t bytes_during(const Exact *x, const Label *from, int n, uint64_t dies)
{
    const RematProblem *p = x->p;
    const RematNode *node = &p->node[n];
    bool dying[MOST_OPERANDS], in_merged[MOST_OPERANDS], out_merged[MOST_OPERANDS];
    int64_t bytes = p->persistent_bytes + node->workspace;
    for (int t = 0; t < p->n_tensors; t++)
        bytes += (from->live | x->makes[n]) >> t & 1 ? p->tensor[t].bytes : 0;
    for (int k = 0; k < node->n_in; k++)
        dying[k] = dies & x->reads[n] & (uint64_t)1 << node->in[k];
    remat_merge_in_place(p, node, dying, in_merged, out_merged);
    for (int k = 0; k < node->n_out; k++)
        bytes -= out_merged[k] ? p->tensor[node->out[k]].bytes : 0;
    return bytes;
}

static bool is_overwritten(const RematProblem *p, uint64_t ran, int tensor)
{
    for (int n = 0; n < p->n_nodes; n++)
        for (int k = 0; ran >> n & 1 && k < p->node[n].n_overwrites; k++)
            if (p->node[n].overwrites[k] == tensor)
                return true;
    return false;
}

static bool is_there(const Exact *x, const Label *label, int tensor)
{
    const RematTensor *t = &x->p->tensor[tensor];
    bool made = t->persistent ? t->producer < 0 || label->ran >> t->producer & 1
                              : label->live >> tensor & 1;
    return made && !is_overwritten(x->p, label->ran, tensor);
}

static bool may_run(const Exact *x, const Label *label, int n)
{
    const RematNode *node = &x->p->node[n];
    bool again = label->ran >> n & 1;
    if ((again && (!node->rerun || node->hint == REMAT_KEEP)) || label->live & x->makes[n])
        return false;
    for (int k = 0; k < node->n_in; k++)
        if (!is_there(x, label, node->in[k]))
            return false;
    return true;
}

static void run(Exact *x, int at, int n)
{
    Label from = x->labels.data[at];
    const RematNode *node = &x->p->node[n];
    bool again = from.ran >> n & 1;
    uint64_t operands = x->reads[n] | x->makes[n];
    for (uint64_t dies = operands;; dies = (dies - 1) & operands) {
        int64_t bytes = bytes_during(x, &from, n, dies);
        Label to = {.ran = from.ran | (uint64_t)1 << n,
                    .live =
                        (from.live | x->makes[n]) & ~dies & (from.ran ? ~(uint64_t)0 : ~x->unread),
                    .rest = from.rest - (again ? 0 : node->cost),
                    .time = from.time + node->cost,
                    .peak_bytes = bytes > from.peak_bytes ? bytes : from.peak_bytes,
                    .parent = at,
                    .node = n};
        if (!is_dominated(x, &to))
            push_label(x, to);
        if (dies == 0)
            return;
    }
}

static void offer_path(Exact *x, int label)
{
    RematSchedule s = {0, NULL};
    for (int k = label; x->labels.data[k].parent >= 0; k = x->labels.data[k].parent)
        s.len++;
    s.node = POOL_ARRAY(x->pool, (size_t)s.len + 1, int);
    for (int k = label, i = s.len; i > 0; k = x->labels.data[k].parent)
        s.node[--i] = x->labels.data[k].node;
    lns_offer_schedule(x->l, &s);
}

/* Follows a label, unless it has become useless since it was made. */
static void expand(Exact *x, int at)
{
    Label label = x->labels.data[at];
    uint64_t all = ((uint64_t)1 << x->p->n_nodes) - 1;
    if (is_dominated(x, &label))
        return;
    if (label.ran)
        settle(x, &label);
    if (label.ran == all && (label.live & x->keep) == x->keep) {
        offer_path(x, at);
        return;
    }
    for (int n = 0; n < x->p->n_nodes; n++)
        if (may_run(x, &x->labels.data[at], n))
            run(x, at, n);
}

static uint64_t not_persistent(const RematProblem *p, const int *tensor, int n)
{
    uint64_t set = 0;
    for (int k = 0; k < n; k++)
        set |= p->tensor[tensor[k]].persistent ? 0 : (uint64_t)1 << tensor[k];
    return set;
}

/* Fills what the search knows of the problem, and the label before the first run. */
static void begin(Exact *x)
{
    const RematProblem *p = x->p;
    x->least_bytes = x->l->low;
    Label first = {.peak_bytes = x->least_bytes, .parent = -1, .node = -1};
    for (int t = 0; t < p->n_tensors; t++) {
        bool given = p->tensor[t].producer < 0 && !p->tensor[t].persistent;
        first.live |= given ? (uint64_t)1 << t : 0;
        x->keep |= p->tensor[t].keep && !p->tensor[t].persistent ? (uint64_t)1 << t : 0;
    }
    x->unread = first.live & ~x->keep;
    for (int n = 0; n < p->n_nodes; n++) {
        x->reads[n] = not_persistent(p, p->node[n].in, p->node[n].n_in);
        x->makes[n] = not_persistent(p, p->node[n].out, p->node[n].n_out);
        x->unread &= ~x->reads[n];
        first.rest += p->node[n].cost;
    }
    push_label(x, first);
}

/* @recompute depends on where the loss stands: not searched. */
static bool is_small(const RematProblem *p)
{
    if (p->n_nodes > MOST_NODES || p->n_tensors > MOST_TENSORS)
        return false;
    for (int n = 0; n < p->n_nodes; n++)
        if (p->node[n].n_in + p->node[n].n_out > MOST_OPERANDS ||
            p->node[n].hint == REMAT_RECOMPUTE)
            return false;
    return true;
}

bool lns_exact(LargeNeighbourhoodSearch *l)
{
    if (!is_small(l->p))
        return false;
    Exact x = {.l = l, .p = l->p, .pool = pool_new_child(l->pool)};
    x.table_size = FIRST_TABLE;
    x.settled = POOL_ARRAY(x.pool, x.table_size, Settled);
    x.reads = POOL_ARRAY(x.pool, (size_t)l->p->n_nodes + 1, uint64_t);
    x.makes = POOL_ARRAY(x.pool, (size_t)l->p->n_nodes + 1, uint64_t);
    begin(&x);
    while (x.heap.len > 0 && x.labels.len < MOST_LABELS && !remat_out_of_time(l->options))
        expand(&x, labels_pop(&x, x.heap.data, x.heap.len--));
    bool done = x.heap.len == 0;
    pool_free(x.pool);
    return done;
}
