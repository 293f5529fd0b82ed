/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Dynamic tensor rematerialization, simulated: what to throw away is decided when memory runs out.
 *
 * Source: Kirisame et al. 2021, Dynamic tensor rematerialization (ICLR).  Nodes run in the given
 * order. When a run would exceed the limit, the value with the least h = cost / (bytes * staleness)
 * is evicted; a value that is read and gone is recomputed first, and so are its ancestors.  cost is
 * h_DTR-eq's: that of the producer and of the evicted components next to it (those it would be
 * recomputed from, and those that would be recomputed from it), which union-find keeps as one sum
 * per component; a value that comes back leaves its component's sum, and the component stays joined
 * (section 4.1, "ẽ*").  staleness is the time since the last use.  Values that nothing of the
 * program will read again are evicted at once (eager eviction), not banished: they may be
 * recomputed for others.
 *
 * Differs: updates are no part of the simulation (runs.c puts them in), so that old versions of
 * weights are there for recomputations.  Limits: from the lower bound to the base order's peak,
 * whatever the budget.  A simulation with more than 16 runs a node thrashes, and is given up, as is
 * one that looks at more than 20 million values. */
#include "ir/support/vec.h"
#include "passes/remat/bounds/bound.h"
#include "passes/remat/model/runs.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/papers/candidates.h"
#include "passes/remat/papers/prune.h"
#include "passes/remat/solvers.h"

enum { MAX_RUNS_PER_NODE = 16, MAX_LOOKS = 20 * 1000 * 1000 };

typedef VEC(int) IntVec;

/* One eviction: a member of a component; the root has the component's cost. */
typedef struct Element {
    int into, seen;
    double cost;
} Element;

typedef struct Dtr {
    const RematProblem *p;
    Pool *pool;
    const bool *late;
    int64_t limit, bytes, work;
    bool *alive, *made; /* by tensor; made: at least once */
    int *reads_left;    /* by tensor: of nodes that have not run yet */
    int *locked;        /* by tensor */
    double *used, now;  /* by tensor: when last used */
    IntVec *readers;    /* by tensor: nodes */
    IntVec list;        /* tensors that are alive and may be evicted */
    int *place;
    int *member; /* by tensor that is evicted: its element of the union-find */
    VEC(Element) element;
    int stamp;
    IntVec runs, stack;
    bool failed;
} Dtr;

static int find(Dtr *d, int e)
{
    Element *x = d->element.data;
    while (x[e].into != e)
        e = x[e].into = x[x[e].into].into;
    return e;
}

static bool is_gone(const Dtr *d, int t)
{
    return d->p->tensor[t].producer >= 0 && d->made[t] && !d->alive[t];
}

static void add_component(Dtr *d, int t, double *cost)
{
    if (!is_gone(d, t))
        return;
    Element *root = &d->element.data[find(d, d->member[t])];
    if (root->seen == d->stamp)
        return;
    root->seen = d->stamp;
    *cost += root->cost;
}

/* The neighbours of t: what its producer reads, and what its readers make. */
static double neighbourhood(Dtr *d, int t)
{
    const RematNode *producer = &d->p->node[d->p->tensor[t].producer];
    double cost = producer->cost;
    d->stamp++;
    for (int k = 0; k < producer->n_in; k++)
        add_component(d, producer->in[k], &cost);
    for (size_t i = 0; i < d->readers[t].len; i++) {
        const RematNode *reader = &d->p->node[d->readers[t].data[i]];
        for (int k = 0; k < reader->n_out; k++)
            add_component(d, reader->out[k], &cost);
    }
    return cost;
}

static void join(Dtr *d, int t, int other)
{
    if (!is_gone(d, other) || other == t)
        return;
    int a = find(d, d->member[t]), b = find(d, d->member[other]);
    if (a == b)
        return;
    d->element.data[b].into = a;
    d->element.data[a].cost += d->element.data[b].cost;
}

static void unlist(Dtr *d, int t)
{
    int last = d->list.data[--d->list.len];
    d->list.data[d->place[t]] = last;
    d->place[last] = d->place[t];
    d->place[t] = -1;
}

static void evict(Dtr *d, int t)
{
    const RematNode *producer = &d->p->node[d->p->tensor[t].producer];
    unlist(d, t);
    d->alive[t] = false;
    d->bytes -= d->p->tensor[t].bytes;
    d->member[t] = (int)d->element.len;
    vec_push(d->pool, &d->element, (Element){d->member[t], 0, producer->cost});
    for (int k = 0; k < producer->n_in; k++)
        join(d, t, producer->in[k]);
    for (size_t i = 0; i < d->readers[t].len; i++)
        for (int k = 0; k < d->p->node[d->readers[t].data[i]].n_out; k++)
            join(d, t, d->p->node[d->readers[t].data[i]].out[k]);
}

static bool evict_one(Dtr *d)
{
    int best = -1;
    double least = 0;
    d->work += (int64_t)d->list.len;
    d->failed |= d->work > MAX_LOOKS;
    for (size_t k = 0; k < d->list.len; k++) {
        int t = d->list.data[k];
        if (d->locked[t] > 0 || d->p->tensor[t].bytes == 0)
            continue;
        double h =
            neighbourhood(d, t) / (double)d->p->tensor[t].bytes / (d->now - d->used[t] + 1e-9);
        if (best < 0 || h < least || (h == least && t < best)) {
            least = h;
            best = t;
        }
    }
    if (best >= 0)
        evict(d, best);
    return best >= 0;
}

static bool may_evict(const Dtr *d, int t)
{
    int producer = d->p->tensor[t].producer;
    return producer >= 0 && is_repeatable(d->p, d->late, producer) && !d->p->tensor[t].keep;
}

/* Nobody in the program reads it again. */
static void evict_eagerly(Dtr *d, int t)
{
    if (d->reads_left[t] > 0 || d->locked[t] > 0 || d->place[t] < 0)
        return;
    evict(d, t);
}

static void bring(Dtr *d, int t)
{
    if (d->alive[t])
        return;
    if (is_gone(d, t)) {
        Element *root = &d->element.data[find(d, d->member[t])];
        root->cost -= d->p->node[d->p->tensor[t].producer].cost;
    }
    d->alive[t] = d->made[t] = true;
    d->bytes += d->p->tensor[t].bytes;
    if (!may_evict(d, t))
        return;
    d->place[t] = (int)d->list.len;
    vec_push(d->pool, &d->list, t);
}

/* Its inputs are alive and locked. */
static void execute(Dtr *d, int n, bool first)
{
    const RematNode *node = &d->p->node[n];
    int64_t bytes = node->workspace;
    for (int k = 0; k < node->n_out; k++)
        bytes += d->alive[node->out[k]] ? 0 : d->p->tensor[node->out[k]].bytes;
    while (d->bytes + bytes > d->limit && evict_one(d))
        ;
    vec_push(d->pool, &d->runs, n);
    d->failed |= (int64_t)d->runs.len > (int64_t)MAX_RUNS_PER_NODE * d->p->n_nodes + 64;
    d->now += node->cost;
    for (int k = 0; k < node->n_out; k++) {
        bring(d, node->out[k]);
        d->used[node->out[k]] = d->now;
    }
    for (int k = 0; k < node->n_in; k++) {
        d->used[node->in[k]] = d->now;
        d->reads_left[node->in[k]] -= first;
    }
}

static void lock_inputs(Dtr *d, int n, int by)
{
    for (int k = 0; k < d->p->node[n].n_in; k++)
        d->locked[d->p->node[n].in[k]] += by;
}

static int missing_producer(const Dtr *d, int n)
{
    for (int k = 0; k < d->p->node[n].n_in; k++)
        if (!d->alive[d->p->node[n].in[k]])
            return d->p->tensor[d->p->node[n].in[k]].producer;
    return -1;
}

/* Runs n after what it needs; the stack holds nodes whose inputs are being brought back, with
 * what they read locked.  Other outputs that a recomputation makes go again at once. */
static void run_with_inputs(Dtr *d, int n)
{
    d->stack.len = 0;
    vec_push(d->pool, &d->stack, n);
    lock_inputs(d, n, 1);
    while (d->stack.len > 0 && !d->failed) {
        int top = d->stack.data[d->stack.len - 1], missing = missing_producer(d, top);
        if (missing >= 0) {
            vec_push(d->pool, &d->stack, missing);
            lock_inputs(d, missing, 1);
            continue;
        }
        const RematNode *node = &d->p->node[top];
        d->stack.len--;
        for (int k = 0; k < node->n_out; k++)
            d->locked[node->out[k]]++;
        execute(d, top, top == n);
        lock_inputs(d, top, -1);
        for (int k = 0; k < node->n_out; k++)
            d->locked[node->out[k]]--;
        for (int k = 0; k < node->n_out; k++)
            evict_eagerly(d, node->out[k]);
        for (int k = 0; k < node->n_in; k++)
            evict_eagerly(d, node->in[k]);
    }
}

static Dtr *dtr_new(Pool *pool, const RematProblem *p, const bool *late, int64_t limit)
{
    Dtr *d = POOL_NEW(pool, Dtr);
    size_t n = (size_t)p->n_tensors + 1;
    *d = (Dtr){.p = p, .pool = pool, .late = late, .limit = limit};
    d->alive = POOL_ARRAY(pool, n, bool);
    d->made = POOL_ARRAY(pool, n, bool);
    d->reads_left = POOL_ARRAY(pool, n, int);
    d->locked = POOL_ARRAY(pool, n, int);
    d->used = POOL_ARRAY(pool, n, double);
    d->readers = POOL_ARRAY(pool, n, IntVec);
    d->place = POOL_ARRAY(pool, n, int);
    d->member = POOL_ARRAY(pool, n, int);
    for (int t = 0; t < p->n_tensors; t++) {
        d->place[t] = -1;
        d->alive[t] = p->tensor[t].producer < 0; /* batches stay: what is made of them may go */
        d->bytes += d->alive[t] ? p->tensor[t].bytes : 0;
    }
    for (int k = 0; k < p->n_nodes; k++)
        for (int i = 0; i < p->node[k].n_in && !late[k]; i++) {
            vec_push(pool, &d->readers[p->node[k].in[i]], k);
            d->reads_left[p->node[k].in[i]]++;
        }
    return d;
}

RematStatus remat_dtr(const RematProblem *p, const RematOptions *o, Pool *pool, RematSchedule *out)
{
    Pool *scratch = pool_new_child(pool);
    Candidates *c = candidates_new(scratch, forward_view_new(scratch, p), o);
    RematSchedule base = remat_base_schedule(scratch, p);
    const bool *late = update_nodes(scratch, p);
    bool all = true;
    int64_t low = remat_peak_lower_bound(p, scratch, o->context.bounds_until, &(int){0});
    int64_t high = peak_without_in_place(scratch, p, &base);
    int steps = p->n_nodes < 3000 ? 16 : 4;
    for (int k = 0; k < steps; k++) {
        Pool *once = pool_new_child(scratch);
        Dtr *d = dtr_new(once, p, late, low + (high - low) / steps * k);
        d->failed = remat_out_of_time(o);
        for (int n = 0; n < p->n_nodes && !d->failed; n++)
            if (!late[n])
                run_with_inputs(d, n);
        if (!d->failed)
            candidates_try_runs(c, late, d->runs.data, (int)d->runs.len, 2);
        all &= !d->failed;
        pool_free(once);
    }
    RematStatus status = candidates_answer(c, pool, out);
    pool_free(scratch);
    return status == REMAT_INFEASIBLE && !all ? REMAT_LIMIT : status;
}
