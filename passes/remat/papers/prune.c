/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Taking recomputations out of a schedule where memory allows: the values' previous runs live on
 * instead.  Source of the idea: Kumar et al. 2019 delete from their schedules what recomputes
 * values that are still in memory; here liveness says which values are in memory, and a limit on
 * the peak which may stay there. */
#include "passes/remat/papers/prune.h"

#include "ir/support/range_max.h"
#include "ir/support/sort.h"
#include "passes/remat/model/runs.h"

#include <string.h>

/* How often all recomputations are looked at; the second round and later ones find little. */
enum { MAX_ROUNDS = 4 };

/* One run's version of a tensor, and its reads in the order of the schedule. */
typedef struct Instance {
    int tensor, run; /* run: -1 = exists before the first */
    int first_read, last_read;
    int before, behind; /* other instances of the tensor */
    bool to_end;
} Instance;

typedef struct Read {
    int run, instance; /* the instance at first; merged ones are found through `into` */
    int before, behind;
} Read;

typedef struct Trace {
    const RematProblem *p;
    const RematSchedule *s;
    Pool *pool;
    Instance *instance;
    int n_instances, n_reads;
    int *into; /* by instance: the one its reads have gone to, or itself */
    Read *read;
    int *made_begin, *read_begin; /* by run */
    int *runs;                    /* by node: how many are left */
    bool *deleted;                /* by run */
    RangeMax alive;               /* bytes, by run */
} Trace;

static int find(Trace *t, int i)
{
    while (t->into[i] != i)
        i = t->into[i] = t->into[t->into[i]];
    return i;
}

static int end_of(const Trace *t, int i)
{
    const Instance *x = &t->instance[i];
    if (x->to_end)
        return t->s->len - 1;
    return x->last_read >= 0 ? t->read[x->last_read].run : x->run < 0 ? 0 : x->run;
}

static int64_t bytes_of(const Trace *t, int i)
{
    return t->p->tensor[t->instance[i].tensor].bytes;
}

static void add_instance(Trace *t, int *current, int tensor, int run)
{
    int i = t->n_instances++;
    t->instance[i] = (Instance){tensor, run, -1, -1, current[tensor], -1, false};
    if (current[tensor] >= 0)
        t->instance[current[tensor]].behind = i;
    t->into[i] = current[tensor] = i;
}

static void add_read(Trace *t, int instance, int run)
{
    Instance *x = &t->instance[instance];
    int r = t->n_reads++;
    t->read[r] = (Read){run, instance, x->last_read, -1};
    if (x->last_read >= 0)
        t->read[x->last_read].behind = r;
    else
        x->first_read = r;
    x->last_read = r;
}

static void add_run(Trace *t, int *current, int run)
{
    const RematNode *node = &t->p->node[t->s->node[run]];
    t->runs[t->s->node[run]]++;
    t->read_begin[run] = t->n_reads;
    for (int k = 0; k < node->n_in; k++)
        add_read(t, current[node->in[k]], run);
    t->made_begin[run] = t->n_instances;
    for (int k = 0; k < node->n_out; k++)
        add_instance(t, current, node->out[k], run);
}

static void measure(Trace *t)
{
    int64_t *bytes = POOL_ARRAY(t->pool, (size_t)t->s->len + 2, int64_t);
    for (int i = 0; i < t->n_instances; i++) {
        if (t->p->tensor[t->instance[i].tensor].persistent)
            continue;
        bytes[t->instance[i].run < 0 ? 0 : t->instance[i].run] += bytes_of(t, i);
        bytes[end_of(t, i) + 1] -= bytes_of(t, i);
    }
    bytes[0] += t->p->persistent_bytes;
    for (int i = 1; i < t->s->len; i++)
        bytes[i] += bytes[i - 1];
    for (int i = 0; i < t->s->len; i++)
        bytes[i] += t->p->node[t->s->node[i]].workspace;
    t->alive = range_max_of(t->pool, bytes, t->s->len);
}

static Trace *trace_new(Pool *pool, const RematProblem *p, const RematSchedule *s)
{
    Trace *t = POOL_NEW(pool, Trace);
    *t = (Trace){.p = p, .s = s, .pool = pool};
    size_t reads = 1, made = (size_t)p->n_tensors + 1, n_runs = (size_t)s->len + 1;
    for (int i = 0; i < s->len; i++) {
        reads += (size_t)p->node[s->node[i]].n_in;
        made += (size_t)p->node[s->node[i]].n_out;
    }
    t->instance = POOL_ARRAY(pool, made, Instance);
    t->into = POOL_ARRAY(pool, made, int);
    t->read = POOL_ARRAY(pool, reads, Read);
    t->made_begin = POOL_ARRAY(pool, n_runs, int);
    t->read_begin = POOL_ARRAY(pool, n_runs, int);
    t->runs = POOL_ARRAY(pool, (size_t)p->n_nodes + 1, int);
    t->deleted = POOL_ARRAY(pool, n_runs, bool);
    int *current = POOL_ARRAY(pool, (size_t)p->n_tensors + 1, int);
    memset(current, -1, ((size_t)p->n_tensors + 1) * sizeof *current);
    for (int k = 0; k < p->n_tensors; k++)
        if (p->tensor[k].producer < 0)
            add_instance(t, current, k, -1);
    for (int i = 0; i < s->len; i++)
        add_run(t, current, i);
    for (int k = 0; k < p->n_tensors; k++)
        if (p->tensor[k].keep && current[k] >= 0)
            t->instance[current[k]].to_end = true;
    measure(t);
    return t;
}

static void delete_run(Trace *t, int run);

/* The read is gone: its instance may die earlier, and its run may have become pointless. */
static void delete_read(Trace *t, int r)
{
    int i = find(t, t->read[r].instance), end = end_of(t, i);
    Instance *x = &t->instance[i];
    const Read *e = &t->read[r];
    if (e->before >= 0)
        t->read[e->before].behind = e->behind;
    else
        x->first_read = e->behind;
    if (e->behind >= 0)
        t->read[e->behind].before = e->before;
    else
        x->last_read = e->before;
    if (!t->p->tensor[x->tensor].persistent)
        range_max_add(&t->alive, end_of(t, i) + 1, end, -bytes_of(t, i));
    if (x->last_read >= 0 || x->to_end || x->run < 0 || t->runs[t->s->node[x->run]] < 2)
        return;
    for (int k = 0; k < t->p->node[t->s->node[x->run]].n_out; k++) {
        const Instance *y = &t->instance[t->made_begin[x->run] + k];
        if (y->last_read >= 0 || y->to_end)
            return;
    }
    delete_run(t, x->run);
}

/* Out of the tensor's list; its reads, if any, go to the instance before, which lives on. */
static void delete_instance(Trace *t, int i)
{
    Instance *x = &t->instance[i];
    int64_t bytes = bytes_of(t, i);
    range_max_add(&t->alive, x->run, end_of(t, i), -bytes);
    if (x->behind >= 0)
        t->instance[x->behind].before = x->before;
    if (x->before >= 0)
        t->instance[x->before].behind = x->behind;
    if (x->first_read < 0 && !x->to_end)
        return;
    Instance *y = &t->instance[x->before];
    int end = end_of(t, x->before);
    if (x->first_read >= 0) {
        t->read[x->first_read].before = y->last_read;
        if (y->last_read >= 0)
            t->read[y->last_read].behind = x->first_read;
        else
            y->first_read = x->first_read;
        y->last_read = x->last_read;
    }
    y->to_end |= x->to_end;
    t->into[i] = x->before;
    range_max_add(&t->alive, end + 1, end_of(t, x->before), bytes);
}

/* Recursion: a deleted run may leave those that made its inputs unread; as deep as they are
 * chained. */
static void delete_run(Trace *t, int run)
{
    const RematNode *node = &t->p->node[t->s->node[run]];
    t->deleted[run] = true;
    t->runs[t->s->node[run]]--;
    range_max_add(&t->alive, run, run, -node->workspace);
    for (int k = 0; k < node->n_out; k++)
        delete_instance(t, t->made_begin[run] + k);
    for (int k = 0; k < node->n_in; k++)
        delete_read(t, t->read_begin[run] + k);
}

/* The gap that the values of a run would have to live through: from the first run after the end of
 * the previous ones, up to the run itself.  False when there is no previous run. */
static bool find_gap(const Trace *t, int run, int *from, int64_t *bytes)
{
    const RematNode *node = &t->p->node[t->s->node[run]];
    *from = run;
    *bytes = 0;
    for (int k = 0; k < node->n_out; k++) {
        int i = t->made_begin[run] + k;
        const Instance *x = &t->instance[i];
        if (x->before < 0)
            return false;
        if (x->first_read < 0 && !x->to_end)
            continue;
        int end = end_of(t, x->before);
        *from = end + 1 < *from ? end + 1 : *from;
        *bytes += bytes_of(t, i);
    }
    return true;
}

static bool fits(const Trace *t, int run, int64_t limit)
{
    int from;
    int64_t bytes;
    if (!find_gap(t, run, &from, &bytes))
        return false;
    return from >= run || range_max_most(&t->alive, from, run - 1) + bytes <= limit;
}

static int list_gains(const Trace *t, Weighted *gain)
{
    int n = 0;
    for (int run = 0; run < t->s->len; run++) {
        int from;
        int64_t bytes;
        const RematNode *node = &t->p->node[t->s->node[run]];
        if (t->deleted[run] || t->runs[t->s->node[run]] < 2 || node->hint == REMAT_RECOMPUTE ||
            !find_gap(t, run, &from, &bytes))
            continue;
        double area = (double)bytes * (double)(run - from);
        gain[n++] = (Weighted){-node->cost / (area + 1), run};
    }
    sort_weighted(gain, (size_t)n);
    return n;
}

static bool prune_round(Trace *t, Weighted *gain, int64_t limit)
{
    bool any = false;
    int n = list_gains(t, gain);
    for (int k = 0; k < n; k++) {
        int run = gain[k].item;
        if (t->deleted[run] || t->runs[t->s->node[run]] < 2 || !fits(t, run, limit))
            continue;
        delete_run(t, run);
        any = true;
    }
    return any;
}

RematSchedule prune_schedule(Pool *pool, const RematProblem *p, const RematSchedule *s,
                             int64_t limit_bytes)
{
    Pool *scratch = pool_new_child(pool);
    Trace *t = trace_new(scratch, p, s);
    Weighted *gain = POOL_ARRAY(scratch, (size_t)s->len + 1, Weighted);
    for (int round = 0; round < MAX_ROUNDS && prune_round(t, gain, limit_bytes); round++)
        ;
    RematSchedule out = {0, POOL_ARRAY(pool, (size_t)s->len + 1, int)};
    for (int i = 0; i < s->len; i++)
        if (!t->deleted[i])
            out.node[out.len++] = s->node[i];
    pool_free(scratch);
    return out;
}

int64_t peak_without_in_place(Pool *pool, const RematProblem *p, const RematSchedule *s)
{
    Pool *scratch = pool_new_child(pool);
    Trace *t = trace_new(scratch, p, s);
    int64_t peak = s->len > 0 ? range_max_most(&t->alive, 0, s->len - 1) : p->persistent_bytes;
    pool_free(scratch);
    return peak;
}
