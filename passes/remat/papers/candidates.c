/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Scoring choices of kept nodes and whole schedules. */
#include "passes/remat/papers/candidates.h"

#include "ir/support/sort.h"
#include "passes/remat/model/runs.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/papers/prune.h"

#include <string.h>

/* How many steps lead from a solver's choice to keeping everything. */
enum { RESTORE_STEPS = 12 };

static void obey_hints(const ForwardView *v, bool *keep)
{
    for (int u = 0; u < v->n; u++) {
        const RematNode *node = &v->p->node[v->node[u]];
        if (node->hint == REMAT_KEEP || !node->rerun)
            keep[u] = true;
        else if (node->hint == REMAT_RECOMPUTE)
            keep[u] = false;
    }
}

static void score(Candidates *c, Pool *scratch, const RematSchedule *s)
{
    RematFigures f = remat_check(scratch, c->view->p, s);
    if (f.ok && (c->tried == 0 || remat_is_better(&c->options, f.peak_bytes, f.time,
                                                  c->figures.peak_bytes, c->figures.time))) {
        c->figures = f;
        c->best.len = s->len;
        c->best.node = pool_grow(c->pool, s->node, (size_t)s->len * sizeof *s->node,
                                 (size_t)s->len * sizeof *s->node + 1);
    }
    if (f.ok && c->options.seen)
        c->options.seen(c->options.user, s, &f);
    c->tried += f.ok;
}

void candidates_try(Candidates *c, const bool *keep)
{
    if (c->tried > 0 && remat_out_of_time(&c->options)) {
        c->limited = true;
        return;
    }
    Pool *pool = pool_new_child(c->pool);
    bool *obeyed = POOL_ARRAY(pool, (size_t)c->view->n + 1, bool);
    memcpy(obeyed, keep, (size_t)c->view->n * sizeof *keep);
    obey_hints(c->view, obeyed);
    RematSchedule s = forward_view_schedule(pool, c->view, obeyed);
    score(c, pool, &s);
    pool_free(pool);
}

void candidates_try_schedule(Candidates *c, const RematSchedule *s)
{
    Pool *pool = pool_new_child(c->pool);
    if (remat_obeys_hints(pool, c->view->p, s))
        score(c, pool, s);
    pool_free(pool);
}

Candidates *candidates_new(Pool *pool, const ForwardView *v, const RematOptions *o)
{
    Candidates *c = POOL_NEW(pool, Candidates);
    *c = (Candidates){.view = v, .options = *o, .pool = pool};
    bool *keep = POOL_ARRAY(pool, (size_t)v->n + 1, bool);
    memset(keep, true, (size_t)v->n);
    candidates_try(c, keep);
    return c;
}

void candidates_try_restoring(Candidates *c, bool *keep)
{
    const ForwardView *v = c->view;
    Weighted *gain = POOL_ARRAY(c->pool, (size_t)v->n + 1, Weighted);
    int n = 0;
    for (int u = 0; u < v->n; u++)
        if (!keep[u])
            gain[n++] = (Weighted){-v->cost[u] / (double)(v->bytes[u] + 1), u};
    sort_weighted(gain, (size_t)n);
    candidates_try(c, keep);
    for (int step = 1, done = 0; step < RESTORE_STEPS; step++) {
        int until = (int)((int64_t)n * step / RESTORE_STEPS);
        if (until == done)
            continue;
        for (; done < until; done++)
            keep[gain[done].item] = true;
        candidates_try(c, keep);
    }
}

void candidates_try_sets(Candidates *c, const int *set_of, int n_sets)
{
    const ForwardView *v = c->view;
    bool *keep = POOL_ARRAY(c->pool, (size_t)v->n + 1, bool);
    for (int u = 0; u < v->n; u++) {
        keep[u] = set_of[u] == n_sets - 1;
        for (int k = v->succ.begin[u]; k < v->succ.begin[u + 1]; k++)
            keep[u] |= set_of[v->succ.item[k]] > set_of[u];
    }
    candidates_try_restoring(c, keep);
}

void candidates_try_runs(Candidates *c, const bool *late, const int *runs, int n_runs, int steps)
{
    const RematProblem *p = c->view->p;
    Pool *pool = pool_new_child(c->pool);
    RematSchedule s = schedule_from_runs(pool, p, late, runs, n_runs);
    RematSchedule base = remat_base_schedule(pool, p);
    candidates_try_schedule(c, &s);
    int64_t low = peak_without_in_place(pool, p, &s), high = peak_without_in_place(pool, p, &base);
    for (int k = 0; k < steps && (k == 0 || high > low); k++) {
        Pool *scratch = pool_new_child(pool);
        int64_t limit = k == 0 ? low : low + (high - low) / steps * k;
        RematSchedule pruned = prune_schedule(scratch, p, &s, limit);
        candidates_try_schedule(c, &pruned);
        pool_free(scratch);
    }
    pool_free(pool);
}

RematStatus candidates_finish(const Candidates *c, RematSchedule *out)
{
    *out = c->best;
    if (c->limited)
        return REMAT_LIMIT;
    return c->figures.peak_bytes <= c->options.budget_bytes ? REMAT_FEASIBLE : REMAT_INFEASIBLE;
}

RematStatus candidates_answer(const Candidates *c, Pool *pool, RematSchedule *out)
{
    size_t bytes = (size_t)c->best.len * sizeof *c->best.node;
    *out = (RematSchedule){c->best.len, pool_grow(pool, c->best.node, bytes, bytes + 1)};
    RematSchedule best;
    return candidates_finish(c, &best);
}
