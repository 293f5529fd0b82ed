/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From a schedule of the step to one of the problem that counts contents, and back. */
#include "passes/remat/model/pieces_schedule.h"

#include "ir/support/sort.h"
#include "ir/support/vec.h"

RematSchedule pieces_runs(Pool *pool, const AliasedProblem *x, const RematSchedule *s)
{
    RematSchedule out = {0, POOL_ARRAY(pool, (size_t)s->len + 1, int)};
    bool *ran = POOL_ARRAY(pool, (size_t)x->problem.n_nodes + 1, bool);
    for (int i = 0; i < s->len; i++) {
        int n = x->index_of[s->node[i]];
        if (n < 0 || (ran[n] && x->problem.node[n].n_out == 0))
            continue;
        ran[n] = true;
        out.node[out.len++] = n;
    }
    return out;
}

typedef struct Complete {
    Pool *pool;
    const RematProblem *p;
    const bool *follows;
    VEC(int) runs;
    int *last;     /* by node of p: its last run so far, counted from 1; 0 = none */
    VEC(int) made; /* what follows and is read, by whatever number of steps */
    int *seen;     /* by node of p: the look at a run that found it last */
    int n_looks;
} Complete;

static void note_inputs(Complete *c, int node)
{
    const RematNode *n = &c->p->node[node];
    for (int i = 0; i < n->n_in; i++) {
        int q = c->p->tensor[n->in[i]].producer;
        if (q < 0 || !c->follows[q] || c->seen[q] == c->n_looks)
            continue;
        c->seen[q] = c->n_looks;
        vec_push(c->pool, &c->made, q);
    }
}

/* It has not run, or something that it is made of has been made since and it may run again. */
static bool is_stale(const Complete *c, int node)
{
    const RematNode *n = &c->p->node[node];
    for (int i = 0; i < n->n_in && n->rerun; i++) {
        int q = c->p->tensor[n->in[i]].producer;
        if (q >= 0 && c->last[q] > c->last[node])
            return true;
    }
    return c->last[node] == 0;
}

static void run(Complete *c, int node)
{
    vec_push(c->pool, &c->runs, node);
    c->last[node] = (int)c->runs.len;
}

/* In the order of the problem, so that each finds what it is made of. */
static void run_completely(Complete *c, int node, bool makes_copies)
{
    c->n_looks++;
    c->made.len = 0;
    note_inputs(c, node);
    for (size_t at = 0; at < c->made.len; at++)
        note_inputs(c, c->made.data[at]);
    sort_ints(c->made.data, c->made.len);
    for (size_t k = 0; k < c->made.len; k++)
        if (is_stale(c, c->made.data[k]))
            run(c, c->made.data[k]);
    if (!c->follows[node] || makes_copies || c->last[node] == 0)
        run(c, node);
}

RematSchedule pieces_complete(Pool *pool, const RematProblem *p, const AliasedProblem *x,
                              const RematSchedule *runs)
{
    Complete c = {.pool = pool, .p = p, .follows = x->follows};
    c.last = POOL_ARRAY(pool, (size_t)p->n_nodes + 1, int);
    c.seen = POOL_ARRAY(pool, (size_t)p->n_nodes + 1, int);
    for (int i = 0; i < runs->len; i++)
        run_completely(&c, x->node_of[runs->node[i]], x->problem.node[runs->node[i]].n_out > 0);
    for (int n = 0; n < p->n_nodes; n++) /* names that nothing reads */
        if (c.last[n] == 0)
            run_completely(&c, n, false);
    return (RematSchedule){(int)c.runs.len, c.runs.data};
}

RematFigures pieces_check(Pool *pool, const AliasedProblem *x, const RematSchedule *s,
                          RematSchedule *runs)
{
    *runs = pieces_runs(pool, x, s);
    return remat_check(pool, &x->problem, runs);
}

int64_t pieces_likely_peak(int64_t peak_bytes, const RematFigures *on_pieces)
{
    bool is_less = on_pieces->ok && on_pieces->peak_bytes < peak_bytes;
    return is_less ? on_pieces->peak_bytes : peak_bytes;
}

int64_t pieces_peak(Pool *scratch, const AliasedProblem *x, const RematSchedule *s,
                    int64_t peak_bytes)
{
    if (!x)
        return peak_bytes;
    Pool *pool = pool_new_child(scratch);
    RematSchedule runs;
    RematFigures f = pieces_check(pool, x, s, &runs);
    pool_free(pool);
    return pieces_likely_peak(peak_bytes, &f);
}
