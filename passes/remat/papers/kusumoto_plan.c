/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From a method of the paper to its figures, and to a schedule of the step (see kusumoto.h); the
 * solvers of its two dynamic programs. */
#include "passes/remat/papers/candidates.h"
#include "passes/remat/papers/forward_view.h"
#include "passes/remat/papers/kusumoto.h"
#include "passes/remat/solvers.h"

#include <math.h>
#include <string.h>

enum { N_BUDGETS = 20 };

KusumotoAnswer kusumoto_plan(Pool *pool, const ForwardGraph *g, const KusumotoMethod *method,
                             int64_t budget, bool memory_centric, int64_t max_steps)
{
    Pool *scratch = pool_new_child(pool);
    KusumotoAnswer a = {.set_of = POOL_ARRAY(pool, (size_t)g->n + 1, int), .budget = budget};
    Family *f = method->family(scratch, g, max_steps);
    a.n_lower_sets = f->n;
    if (budget == 0)
        a.budget = method->smallest_budget(f);
    a.n_sets = method->solve(f, a.budget, memory_centric, a.set_of);
    a.limited = f->limited;
    if (a.n_sets) {
        a.overhead = kusumoto_eq1(g, a.set_of);
        a.peak = kusumoto_eq2(scratch, g, a.set_of, a.n_sets);
    }
    pool_free(scratch);
    return a;
}

typedef struct Sweep {
    const KusumotoMethod *method;
    const RematOptions *options;
    Family *f;
    Candidates *candidates;
    int64_t smallest;
    int *set_of, *previous;
} Sweep;

/* Out of steps or, which is no property of the answer, out of time. */
static bool is_stopped(const Sweep *s)
{
    s->f->limited |= remat_out_of_time(s->options);
    return s->f->steps > s->f->max_steps || remat_out_of_time(s->options);
}

static void sweep(Sweep *s, bool memory_centric)
{
    size_t bytes = (size_t)s->f->g->n * sizeof(int);
    double low = (double)s->smallest, high = 2.0 * (double)s->f->set[s->f->n - 1].bytes;
    memset(s->previous, -1, bytes);
    for (int k = 0; k < N_BUDGETS && !is_stopped(s); k++) {
        double budget = low > 0 ? low * pow(high / low, (double)k / (N_BUDGETS - 1)) : high;
        int n_sets = s->method->solve(s->f, (int64_t)budget, memory_centric, s->set_of);
        if (n_sets > 0 && memcmp(s->set_of, s->previous, bytes) != 0)
            candidates_try_sets(s->candidates, s->set_of, n_sets);
        memcpy(s->previous, s->set_of, bytes);
    }
}

RematStatus kusumoto_schedule(const KusumotoMethod *method, const RematProblem *p,
                              const RematOptions *o, Pool *pool, RematSchedule *out)
{
    Pool *scratch = pool_new_child(pool);
    ForwardView *v = forward_view_new(scratch, p);
    ForwardGraph g = forward_view_graph(v);
    g.until = o->deadline_seconds;
    Candidates *c = candidates_new(scratch, v, o);
    bool limited = false;
    if (v->n > 1) {
        int64_t max_steps = o->max_steps > 0 ? o->max_steps : method->max_steps;
        Sweep s = {.method = method,
                   .options = o,
                   .f = method->family(scratch, &g, max_steps),
                   .candidates = c};
        s.set_of = POOL_ARRAY(scratch, (size_t)g.n, int);
        s.previous = POOL_ARRAY(scratch, (size_t)g.n, int);
        s.smallest = method->smallest_budget(s.f);
        if (o->objective == REMAT_MIN_TIME)
            sweep(&s, false);
        sweep(&s, true);
        limited = s.f->limited;
    }
    RematStatus status = candidates_answer(c, pool, out);
    pool_free(scratch);
    return limited ? REMAT_LIMIT : status;
}

/* Exact dynamic programming over all lower sets.
 *
 * Source: Kusumoto et al. 2019, section 4.2 and algorithm 1.  Errata: see kusumoto.h.  Differs:
 * with more than sqrt(max_steps) lower sets it is the approximate algorithm (4.3) and has the
 * status `limit`, as it has when the steps run out; real times are quantised to 4,096 units. */
const KusumotoMethod kusumoto_exact = {1000000000, kusumoto_family_all, kusumoto_smallest_budget,
                                       kusumoto_solve};

RematStatus remat_kusumoto_exact(const RematProblem *p, const RematOptions *o, Pool *pool,
                                 RematSchedule *out)
{
    return kusumoto_schedule(&kusumoto_exact, p, o, pool, out);
}

/* Approximate dynamic programming over lower sets.
 *
 * Source: Kusumoto et al. 2019, section 4.3 and algorithm 1: the sets are {L^v}, the ancestors of v
 * with v; the empty set and V are added.  Errata: see kusumoto.h.  Differs: past 1,000 sets those
 * with the smallest boundaries are used; real times are quantised to at most 4,096 units (fewer for
 * large graphs, so that blocks times units stay below 8e6). */
const KusumotoMethod kusumoto_approx = {1000000000, kusumoto_family_ancestors,
                                        kusumoto_smallest_budget, kusumoto_solve};

RematStatus remat_kusumoto_approx(const RematProblem *p, const RematOptions *o, Pool *pool,
                                  RematSchedule *out)
{
    return kusumoto_schedule(&kusumoto_approx, p, o, pool, out);
}
