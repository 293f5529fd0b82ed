/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One walk over the step, recomputing what helps most whenever memory is over a limit.
 *
 * Source: XLA's HloRematerialization, as Kumar et al. 2019 (section 4, GreedyRemat) describe and
 * measure it.  Nodes are placed one after the other.  While memory at a node is over the limit, the
 * placed node, or block of consecutive placed runs, that saves most bytes per time is chosen among
 * those that save any; its clone goes before the earliest user that is not placed yet, and what has
 * been read dies.  What a clone reads and would be dead by then lives on, and counts against the
 * block. When nothing helps, blocks of twice the length are tried; a success goes back to single
 * nodes.  When no length helps, the walk goes on over the limit.
 *
 * Differs: bytes saved per time, where XLA counts bytes only.  A run that nothing has read yet is
 * no candidate (XLA may move it, once): this, and a limit of 8 runs a node, keep two clones from
 * undoing each other for ever.  Blocks have at most 32 runs.  Updates do not wait: what reads an
 * old version is not cloned behind the node that overwrites it.  Limits: 16 (fewer for large steps)
 * from the lower bound to the base order's peak, whatever the budget, so that time is monotone in
 * the budget. */
#include "ir/support/vec.h"
#include "passes/remat/bounds/bound.h"
#include "passes/remat/model/runs.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/papers/candidates.h"
#include "passes/remat/papers/prune.h"
#include "passes/remat/solvers.h"

#include <string.h>

enum { MAX_BLOCK = 32, RUNS_PER_NODE = 8, LABEL_BITS = 24 };
/* Looks at values in all walks together: about a second. */
static const int64_t MAX_WORK = 400 * 1000 * 1000;

typedef VEC(int) IntVec;

/* One run in the list. */
typedef struct Run {
    int node, before, behind;
    int64_t label; /* ascends along the list */
    bool placed;
} Run;

typedef struct Xla {
    const RematProblem *p;
    Pool *pool; /* of one walk */
    bool *late, *repeatable;
    int64_t limit, work, max_work;
    Run *run;
    int n_runs, max_runs, last; /* last: in the list */
    int *placed_run;            /* by node: its latest placed run, -1 = none */
    int *clone;                 /* by node: its run that waits to be placed, -1 = none */
    int *overwriter;            /* by tensor: the run that overwrites it, -1 = none */
    IntVec *reader;             /* by tensor: runs that read it and are not placed */
    bool *was_read;             /* by tensor: since its latest run */
    bool *is_live;              /* by tensor */
    int64_t live_bytes;
    IntVec live;      /* nodes that may run again with a live output */
    int *place;       /* by node: where in live, -1 */
    int *in_use, use; /* by tensor: stamp of the run being placed */
    int *inside, n_blocks;
} Xla;

static bool comes_before(const Xla *x, int a, int b)
{
    return x->run[a].label < x->run[b].label;
}

static int earliest_reader(const Xla *x, int tensor)
{
    int first = -1;
    for (size_t k = 0; k < x->reader[tensor].len; k++)
        if (first < 0 || comes_before(x, x->reader[tensor].data[k], first))
            first = x->reader[tensor].data[k];
    return first;
}

/* Is what the latest placed run made of it read again, or a result? */
static bool is_needed(const Xla *x, int tensor)
{
    int producer = x->p->tensor[tensor].producer, first = earliest_reader(x, tensor);
    int clone = producer < 0 ? -1 : x->clone[producer];
    if (first >= 0 && (clone < 0 || comes_before(x, first, clone)))
        return true;
    return x->p->tensor[tensor].keep && clone < 0;
}

static bool exists(const Xla *x, int tensor)
{
    int producer = x->p->tensor[tensor].producer;
    return producer < 0 || x->placed_run[producer] >= 0;
}

static void list_live(Xla *x, int node)
{
    bool any = false;
    for (int k = 0; k < x->p->node[node].n_out; k++)
        any |= x->is_live[x->p->node[node].out[k]];
    any &= x->repeatable[node];
    if (any && x->place[node] < 0) {
        x->place[node] = (int)x->live.len;
        vec_push(x->pool, &x->live, node);
    } else if (!any && x->place[node] >= 0) {
        int last = x->live.data[--x->live.len];
        x->live.data[x->place[node]] = last;
        x->place[last] = x->place[node];
        x->place[node] = -1;
    }
}

/* Brings is_live and the sums up to date with who still reads the tensor. */
static void refresh(Xla *x, int tensor)
{
    const RematTensor *t = &x->p->tensor[tensor];
    bool now = !t->persistent && exists(x, tensor) && is_needed(x, tensor);
    if (t->persistent || now == x->is_live[tensor])
        return;
    x->is_live[tensor] = now;
    x->live_bytes += now ? t->bytes : -t->bytes;
    if (t->producer >= 0)
        list_live(x, t->producer);
}

/* The list */

static void relabel(Xla *x)
{
    int64_t label = 0;
    int first = x->last;
    while (first >= 0 && x->run[first].before >= 0)
        first = x->run[first].before;
    for (int i = first; i >= 0; i = x->run[i].behind)
        x->run[i].label = label += (int64_t)1 << LABEL_BITS;
}

static int insert_run(Xla *x, int node, int behind)
{
    int i = x->n_runs++, before = behind < 0 ? x->last : x->run[behind].before;
    int64_t low = before < 0 ? 0 : x->run[before].label;
    int64_t high = behind < 0 ? low + ((int64_t)2 << LABEL_BITS) : x->run[behind].label;
    x->run[i] = (Run){node, before, behind, low + (high - low) / 2, false};
    if (before >= 0)
        x->run[before].behind = i;
    if (behind >= 0)
        x->run[behind].before = i;
    else
        x->last = i;
    if (high - low < 2)
        relabel(x);
    for (int k = 0; k < x->p->node[node].n_in; k++)
        vec_push(x->pool, &x->reader[x->p->node[node].in[k]], i);
    return i;
}

static void remove_reader(IntVec *readers, int run)
{
    for (size_t k = 0; k < readers->len; k++)
        if (readers->data[k] == run) {
            readers->data[k] = readers->data[--readers->len];
            return;
        }
}

/* Candidates */

typedef struct Block {
    int first, len, behind; /* consecutive runs; behind: what its clones go before */
    double value;
} Block;

/* What becomes free now, and whom the clones must go before. */
static int64_t freed_bytes(Xla *x, const Block *b, int *behind)
{
    int64_t bytes = 0;
    for (int i = b->first, n = 0; n < b->len; i = x->run[i].behind, n++) {
        const RematNode *node = &x->p->node[x->run[i].node];
        for (int k = 0; k < node->n_out; k++) {
            int t = node->out[k];
            x->work++;
            if (!x->is_live[t])
                continue;
            int first = earliest_reader(x, t);
            if (*behind < 0 || (first >= 0 && comes_before(x, first, *behind)))
                *behind = first;
            bytes += x->in_use[t] == x->use ? 0 : x->p->tensor[t].bytes;
        }
    }
    return bytes;
}

/* What must live on for the clones; -1 when they cannot be made there. */
static int64_t prolonged_bytes(Xla *x, const Block *b)
{
    int64_t bytes = 0;
    for (int i = b->first, n = 0; n < b->len; i = x->run[i].behind, n++) {
        const RematNode *node = &x->p->node[x->run[i].node];
        for (int k = 0; k < node->n_in; k++) {
            int t = node->in[k], producer = x->p->tensor[t].producer;
            x->work++;
            if (x->overwriter[t] >= 0 && comes_before(x, x->overwriter[t], b->behind))
                return -1;
            if (producer >= 0 && x->inside[producer] == x->n_blocks)
                continue;
            bool later = producer >= 0 && x->clone[producer] >= 0 &&
                         comes_before(x, x->clone[producer], b->behind);
            bytes += later || x->is_live[t] || x->p->tensor[t].persistent || x->in_use[t] == x->use
                         ? 0
                         : x->p->tensor[t].bytes;
        }
    }
    return bytes;
}

/* Each of the runs is its node's latest, has been read since, and may be repeated. */
static bool is_block(Xla *x, const Block *b, double *cost)
{
    x->n_blocks++;
    *cost = 0;
    for (int i = b->first, n = 0; n < b->len; i = x->run[i].behind, n++) {
        int node = x->run[i].node;
        bool was_read = false;
        for (int k = 0; k < x->p->node[node].n_out; k++)
            was_read |= x->was_read[x->p->node[node].out[k]];
        x->work++;
        if (!x->repeatable[node] || x->placed_run[node] != i || x->clone[node] >= 0 || !was_read)
            return false;
        x->inside[node] = x->n_blocks;
        *cost += x->p->node[node].cost;
    }
    return true;
}

static bool judge(Xla *x, Block *b)
{
    double cost;
    if (!is_block(x, b, &cost))
        return false;
    b->behind = -1;
    int64_t freed = freed_bytes(x, b, &b->behind);
    if (freed <= 0 || b->behind < 0)
        return false;
    int64_t prolonged = prolonged_bytes(x, b);
    if (prolonged < 0 || freed <= prolonged)
        return false;
    b->value = (double)(freed - prolonged) / (cost > 0 ? cost : 1e-12);
    return true;
}

/* The best block of this length; len = 0 when none helps. */
static Block pick(Xla *x, int len, int current)
{
    Block best = {0};
    for (size_t k = 0; k < x->live.len; k++) {
        Block b = {.first = x->placed_run[x->live.data[k]], .len = 1};
        for (; b.first >= 0 && b.len < len; b.len++)
            b.first = x->run[b.first].before;
        if (b.first < 0 || x->placed_run[x->live.data[k]] == current || !judge(x, &b))
            continue;
        if (best.len == 0 || b.value > best.value ||
            (b.value == best.value && comes_before(x, b.first, best.first)))
            best = b;
    }
    return best;
}

static void clone_block(Xla *x, const Block *b)
{
    for (int i = b->first, n = 0; n < b->len; i = x->run[i].behind, n++)
        x->clone[x->run[i].node] = insert_run(x, x->run[i].node, b->behind);
    for (int i = b->first, n = 0; n < b->len; i = x->run[i].behind, n++) {
        const RematNode *node = &x->p->node[x->run[i].node];
        for (int k = 0; k < node->n_out; k++)
            refresh(x, node->out[k]);
        for (int k = 0; k < node->n_in; k++)
            refresh(x, node->in[k]);
    }
}

static void reduce(Xla *x, int current, int64_t here)
{
    int len = 1;
    while (x->live_bytes + here > x->limit && len <= MAX_BLOCK &&
           x->n_runs + MAX_BLOCK < x->max_runs && x->work < x->max_work) {
        Block b = pick(x, len, current);
        len = b.len > 0 ? 1 : 2 * len;
        if (b.len > 0)
            clone_block(x, &b);
    }
}

/* Bytes that the run needs beyond what is live: outputs, workspace, inputs that are read for the
 * last time. */
static int64_t own_bytes(Xla *x, const RematNode *node)
{
    int64_t bytes = node->workspace;
    for (int k = 0; k < node->n_out; k++)
        bytes += x->is_live[node->out[k]] ? 0 : x->p->tensor[node->out[k]].bytes;
    for (int k = 0; k < node->n_in; k++) {
        const RematTensor *t = &x->p->tensor[node->in[k]];
        bytes += x->is_live[node->in[k]] || t->persistent ? 0 : t->bytes;
    }
    return bytes;
}

static void place_run(Xla *x, int i)
{
    const RematNode *node = &x->p->node[x->run[i].node];
    x->run[i].placed = true;
    x->placed_run[x->run[i].node] = i;
    if (x->clone[x->run[i].node] == i)
        x->clone[x->run[i].node] = -1;
    x->use++;
    for (int k = 0; k < node->n_in; k++) {
        x->in_use[node->in[k]] = x->use;
        x->was_read[node->in[k]] = true;
        remove_reader(&x->reader[node->in[k]], i);
        refresh(x, node->in[k]);
    }
    for (int k = 0; k < node->n_out; k++) {
        x->was_read[node->out[k]] = false;
        refresh(x, node->out[k]);
    }
    reduce(x, i, own_bytes(x, node));
}

static Xla *walk_new(Pool *pool, const RematProblem *p, bool *late, int64_t limit, int64_t max_work)
{
    Xla *x = POOL_NEW(pool, Xla);
    size_t nodes = (size_t)p->n_nodes + 1, tensors = (size_t)p->n_tensors + 1;
    *x = (Xla){.p = p, .pool = pool, .late = late, .limit = limit, .max_work = max_work};
    x->max_runs = RUNS_PER_NODE * p->n_nodes + 2 * MAX_BLOCK;
    x->run = POOL_ARRAY(pool, (size_t)x->max_runs, Run);
    x->repeatable = POOL_ARRAY(pool, nodes, bool);
    x->placed_run = POOL_ARRAY(pool, nodes, int);
    x->clone = POOL_ARRAY(pool, nodes, int);
    x->place = POOL_ARRAY(pool, nodes, int);
    x->inside = POOL_ARRAY(pool, nodes, int);
    x->overwriter = POOL_ARRAY(pool, tensors, int);
    x->reader = POOL_ARRAY(pool, tensors, IntVec);
    x->was_read = POOL_ARRAY(pool, tensors, bool);
    x->is_live = POOL_ARRAY(pool, tensors, bool);
    x->in_use = POOL_ARRAY(pool, tensors, int);
    x->live_bytes = p->persistent_bytes;
    x->last = -1;
    memset(x->overwriter, -1, tensors * sizeof *x->overwriter);
    for (int n = 0; n < p->n_nodes; n++) {
        x->placed_run[n] = x->clone[n] = x->place[n] = -1;
        x->repeatable[n] = is_repeatable(p, late, n);
        int i = insert_run(x, n, -1);
        for (int k = 0; k < p->node[n].n_overwrites; k++)
            x->overwriter[p->node[n].overwrites[k]] = i;
    }
    for (int t = 0; t < p->n_tensors; t++)
        refresh(x, t);
    return x;
}

/* False when the walk was cut short. */
static bool walk(Xla *x, RematSchedule *out)
{
    int first = x->last;
    while (first >= 0 && x->run[first].before >= 0)
        first = x->run[first].before;
    for (int i = first; i >= 0; i = x->run[i].behind)
        place_run(x, i);
    *out = (RematSchedule){0, POOL_ARRAY(x->pool, (size_t)x->n_runs + 1, int)};
    for (int i = first; i >= 0; i = x->run[i].behind)
        out->node[out->len++] = x->run[i].node;
    return x->work < x->max_work && x->n_runs + MAX_BLOCK < x->max_runs;
}

RematStatus remat_xla_greedy(const RematProblem *p, const RematOptions *o, Pool *pool,
                             RematSchedule *out)
{
    Pool *scratch = pool_new_child(pool);
    Candidates *c = candidates_new(scratch, forward_view_new(scratch, p), o);
    RematSchedule base = remat_base_schedule(scratch, p);
    bool *late = update_nodes(scratch, p), all = true;
    int64_t low = remat_peak_lower_bound(p, scratch, o->context.bounds_until, &(int){0});
    int64_t high = peak_without_in_place(scratch, p, &base);
    int steps = p->n_nodes < 3000 ? 16 : 4;
    int64_t max_work = o->max_steps > 0 ? o->max_steps : MAX_WORK;
    for (int k = 0; k < steps; k++) {
        Pool *once = pool_new_child(scratch);
        int64_t limit = low + (high - low) / steps * k;
        RematSchedule s;
        Xla *x = walk_new(once, p, late, limit, max_work / steps);
        bool whole = !remat_out_of_time(o);
        if (whole) {
            whole = walk(x, &s);
            candidates_try_schedule(c, &s);
        }
        all &= whole;
        pool_free(once);
    }
    RematStatus status = candidates_answer(c, pool, out);
    pool_free(scratch);
    return status == REMAT_INFEASIBLE && !all ? REMAT_LIMIT : status;
}
