/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Independent replay of a schedule.  It shares no code with the solvers or the memory planner, and
 * only its numbers are reported. */
#include "passes/remat/model/problem.h"

/* One run's version of a tensor. */
typedef struct Instance {
    int tensor,
        last; /* last: index of the run that reads it last; the run that made it when none does */
    bool to_end;
} Instance;

typedef struct Replay {
    Pool *pool;
    const RematProblem *p;
    const RematSchedule *s;
    Instance *instance;
    int n_instances;
    int *current;      /* by tensor: its instance, -1 = none */
    int *read;         /* instances read, run by run */
    int *made;         /* instances made, run by run */
    bool *overwritten; /* by tensor */
    int *runs;         /* by node */
    int n_batch;       /* instances that exist before the first run */
    RematFigures *figures;
} Replay;

static bool fail(Replay *r, Pool *pool, const char *what, int run, const char *name)
{
    r->figures->fault = pool_printf(pool, "run %d: %s (%s)", run, what, name ? name : "unnamed");
    return false;
}

static void count_items(const RematProblem *p, const RematSchedule *s, size_t *reads, size_t *makes)
{
    *reads = 0;
    *makes = (size_t)p->n_tensors;
    for (int i = 0; i < s->len; i++) {
        if (s->node[i] < 0 || s->node[i] >= p->n_nodes)
            continue;
        *reads += (size_t)p->node[s->node[i]].n_in;
        *makes += (size_t)p->node[s->node[i]].n_out;
    }
}

static int make_instance(Replay *r, int tensor, int run)
{
    r->instance[r->n_instances] = (Instance){tensor, run, false};
    r->current[tensor] = r->n_instances;
    return r->n_instances++;
}

static void begin_replay(Replay *r)
{
    size_t reads, makes;
    count_items(r->p, r->s, &reads, &makes);
    r->instance = POOL_ARRAY(r->pool, makes + 1, Instance);
    r->read = POOL_ARRAY(r->pool, reads + 1, int);
    r->made = POOL_ARRAY(r->pool, makes + 1, int);
    r->current = POOL_ARRAY(r->pool, (size_t)r->p->n_tensors + 1, int);
    r->overwritten = POOL_ARRAY(r->pool, (size_t)r->p->n_tensors + 1, bool);
    r->runs = POOL_ARRAY(r->pool, (size_t)r->p->n_nodes + 1, int);
    for (int t = 0; t < r->p->n_tensors; t++) {
        r->current[t] = -1;
        if (r->p->tensor[t].producer < 0)
            make_instance(r, t, 0);
    }
    r->n_batch = r->n_instances;
}

static bool read_inputs(Replay *r, Pool *pool, int run, const RematNode *node, int **read)
{
    for (int k = 0; k < node->n_in; k++) {
        int t = node->in[k];
        if (r->current[t] < 0)
            return fail(r, pool, "reads a tensor that does not exist yet", run,
                        r->p->tensor[t].name);
        if (r->overwritten[t])
            return fail(r, pool, "reads a tensor that has been overwritten", run,
                        r->p->tensor[t].name);
        r->instance[r->current[t]].last = run;
        *(*read)++ = r->current[t];
    }
    return true;
}

/* Resolves every read to the latest run of its producer, and finds last reads. */
static bool resolve(Replay *r, Pool *pool)
{
    int *read = r->read, *made = r->made;
    for (int i = 0; i < r->s->len; i++) {
        int n = r->s->node[i];
        if (n < 0 || n >= r->p->n_nodes)
            return fail(r, pool, "no such node", i, NULL);
        const RematNode *node = &r->p->node[n];
        if (r->runs[n]++ > 0 && !node->rerun)
            return fail(r, pool, "runs a second time and must not", i, node->name);
        if (!read_inputs(r, pool, i, node, &read))
            return false;
        for (int k = 0; k < node->n_overwrites; k++)
            r->overwritten[node->overwrites[k]] = true;
        for (int k = 0; k < node->n_out; k++)
            *made++ = make_instance(r, node->out[k], i);
    }
    for (int n = 0; n < r->p->n_nodes; n++)
        if (r->runs[n] == 0)
            return fail(r, pool, "never ran", r->s->len, r->p->node[n].name);
    for (int t = 0; t < r->p->n_tensors; t++)
        if (r->p->tensor[t].keep && r->current[t] >= 0)
            r->instance[r->current[t]].to_end = true;
    return true;
}

static bool dies_at(const Replay *r, int instance, int run)
{
    const Instance *x = &r->instance[instance];
    return x->last == run && !x->to_end && !r->p->tensor[x->tensor].persistent;
}

static int64_t bytes_of(const Replay *r, int instance)
{
    return r->p->tensor[r->instance[instance].tensor].bytes;
}

/* The first legal pairs in order; an input and an output take part at most once.  Marks both. */
static void merge_in_place(const Replay *r, int run, const RematNode *node, const int *read,
                           const int *made, bool *in_merged, bool *out_merged)
{
    for (int k = 0; k < node->n_in; k++)
        in_merged[k] = false;
    for (int k = 0; k < node->n_out; k++)
        out_merged[k] = false;
    for (int k = 0; k < node->n_in_place; k++) {
        int out = node->in_place[k].out, in = node->in_place[k].in;
        if (in_merged[in] || out_merged[out] || !dies_at(r, read[in], run) ||
            bytes_of(r, read[in]) != bytes_of(r, made[out]))
            continue;
        in_merged[in] = out_merged[out] = true;
    }
}

static int most_operands(const RematProblem *p)
{
    int most = 1;
    for (int n = 0; n < p->n_nodes; n++) {
        most = p->node[n].n_in > most ? p->node[n].n_in : most;
        most = p->node[n].n_out > most ? p->node[n].n_out : most;
    }
    return most;
}

static int64_t bytes_before(const Replay *r)
{
    int64_t bytes = 0;
    for (int t = 0; t < r->p->n_tensors; t++)
        if (r->p->tensor[t].producer < 0)
            bytes += r->p->tensor[t].bytes;
    return bytes;
}

static void measure_peak(Replay *r)
{
    int most = most_operands(r->p), *read = r->read, *made = r->made;
    bool *in_merged = POOL_ARRAY(r->pool, (size_t)most, bool);
    bool *out_merged = POOL_ARRAY(r->pool, (size_t)most, bool);
    bool *counted = POOL_ARRAY(r->pool, (size_t)r->p->n_tensors + 1, bool);
    int64_t alive = bytes_before(r);
    r->figures->peak_bytes = alive;
    for (int i = 0; i < r->s->len; i++) {
        const RematNode *node = &r->p->node[r->s->node[i]];
        merge_in_place(r, i, node, read, made, in_merged, out_merged);
        for (int k = 0; k < node->n_out; k++)
            alive += out_merged[k] ? 0 : bytes_of(r, made[k]);
        if (alive + node->workspace > r->figures->peak_bytes) {
            r->figures->peak_bytes = alive + node->workspace;
            r->figures->peak_at = i;
        }
        for (int k = 0; k < node->n_in; k++)
            if (!in_merged[k] && dies_at(r, read[k], i))
                alive -= bytes_of(r, read[k]);
        for (int k = 0; k < node->n_out; k++)
            if (dies_at(r, made[k], i))
                alive -= bytes_of(r, made[k]);
        for (int k = 0; i == 0 && k < node->n_in; k++)
            counted[node->in[k]] = true;
        for (int b = 0; i == 0 && b < r->n_batch; b++) /* batch inputs that nothing reads */
            if (!counted[r->instance[b].tensor] && dies_at(r, b, 0))
                alive -= bytes_of(r, b);
        read += node->n_in;
        made += node->n_out;
    }
}

static void measure_time(Replay *r)
{
    for (int n = 0; n < r->p->n_nodes; n++) {
        r->figures->time_once += r->p->node[n].cost;
        r->figures->time += r->p->node[n].cost * r->runs[n];
        r->figures->recomputed += r->runs[n] - 1;
    }
}

RematFigures remat_check(Pool *scratch, const RematProblem *p, const RematSchedule *s)
{
    RematFigures figures = {.fault = ""};
    Pool *pool = pool_new_child(scratch);
    Replay r = {.pool = pool, .p = p, .s = s, .figures = &figures};
    begin_replay(&r);
    figures.ok = resolve(&r, scratch);
    if (figures.ok) {
        measure_peak(&r);
        measure_time(&r);
    }
    pool_free(pool);
    return figures;
}
