/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a plan is, and what is proven of it. */
#include "passes/remat/planner_internal.h"

#include "passes/remat/cache/solution_cache.h"
#include "passes/remat/solve.h"
#include "passes/remat/solvers.h"

#include <math.h>

/* What is proven */

/* No plan of another form takes less time within the budget, or none was looked for. */
static bool is_fastest(const Chosen *c)
{
    for (int i = 0; i < c->n && c->of->request->budget.kind != BUDGET_NONE; i++)
        if (c->all[i] != c->of &&
            planner_may_be_faster(c->all[i], c->of->budget_bytes, c->plan.answer.figures.time))
            return false;
    return true;
}

/* Nothing in b is better than a, both within the budget or not. */
static bool is_as_good(const Solve *s, const RematFigures *a, const RematFigures *b)
{
    if (a->peak_bytes > s->budget_bytes)
        return b->peak_bytes > s->budget_bytes;
    return s->request->objective == REMAT_MIN_MEMORY ? b->peak_bytes >= a->peak_bytes
                                                     : b->time >= a->time;
}

/* The solver's own exact search counts only with the runs that we allow ourselves: where more may
 * be, they are searched as well. */
static bool search_proves(const Chosen *c)
{
    Solve *s = c->of;
    if (!c->plan.notes.exact || !s->step->every)
        return c->plan.notes.exact;
    RematNotes notes = {0};
    RematOptions o = s->options;
    o.budget_bytes = s->budget_bytes;
    o.notes = &notes;
    o.context.solution_cache = solution_cache_second(s->options.context.solution_cache);
    RematAnswer b = remat_solve(s->step->every, remat_solver_find("scrimp"), &o, s->scratch);
    return notes.exact && is_as_good(s, &c->plan.answer.figures, &b.figures);
}

/* That no plan is better, or where it does not fit, that none fits.  A search proves something of
 * peaks only.  A time that is not above that of running each node once is the least that there is.
 */
static bool is_proven(const Chosen *c, const RematReport *r)
{
    const RematFigures *f = &c->plan.answer.figures;
    bool fits = c->plan.bytes <= r->budget_bytes, by_peak = !c->of->step->arena;
    if (!fits)
        return r->lower_bound_bytes > r->budget_bytes ||
               (by_peak && (isinf(r->overhead_lower_bound_percent) || search_proves(c)));
    if (c->of->request->objective == REMAT_MIN_MEMORY)
        return c->plan.bytes <= r->lower_bound_bytes || (by_peak && search_proves(c));
    return by_peak ? f->time <= f->time_once || search_proves(c)
                   : f->recomputed == 0 && is_fastest(c);
}

/* Reporting */

static double percent_more(double time, double base)
{
    return base > 0 ? 100 * (time - base) / base : 0;
}

/* Of a step's time. */
static double forward_percent(const RematProblem *p)
{
    double forward = 0, step = 0;
    for (int n = 0; n < p->n_nodes; n++) {
        step += p->node[n].cost;
        forward += p->node[n].forward ? p->node[n].cost : 0;
    }
    return step > 0 ? 100 * forward / step : 0;
}

static void fill_figures(const Chosen *c, const Solve *base, RematReport *r)
{
    const Solve *s = c->of;
    const RematFigures *f = &c->plan.answer.figures;
    r->solver = c->plan.answer.solver;
    r->peak_bytes = f->peak_bytes;
    r->persistent_bytes = s->p->persistent_bytes;
    r->keep_all_peak_bytes = base->keep_all.peak_bytes;
    r->budget_bytes = s->budget_bytes;
    if (s->request->budget.kind == BUDGET_MIN)
        r->min_feasible_bytes = s->budget_bytes;
    r->recomputed_ops = f->recomputed;
    r->treewidth = c->plan.notes.treewidth;
    r->cost = s->step->cost;
    r->step_cost = f->time;
    r->base_cost = base->keep_all.time;
    r->overhead_percent = percent_more(f->time, r->base_cost);
    r->forward_percent = forward_percent(base->p);
}

/* The bounds that are reported may take a quarter of the time more. */
static SolveContext claims_context(const Solve *s)
{
    SolveContext c = s->options.context;
    double limit = s->request->time_limit_seconds;
    c.bounds_until = limit > 0 ? s->options.deadline_seconds + limit / 4 : 0;
    return c;
}

static void fill_claims(Pool *pool, const Chosen *c, RematReport *r)
{
    const Solve *s = c->of;
    SolveContext of = claims_context(s);
    bound_report_limits(s->request->solver, &s->options, s->p, r);
    bound_report_fill(pool, s->step->every ? s->step->every : s->p, &of, r);
    for (int i = 0; i < c->n; i++) {
        SolveContext other = claims_context(c->all[i]);
        int64_t order = r->order_bound_bytes;
        if (c->all[i] != c->of)
            bound_report_also(pool, c->all[i]->p, &other, r);
        if (c->all[i]->step->runs_again)
            r->order_bound_bytes = c->all[i] == c->of ? 0 : order;
    }
    bool fits = c->plan.bytes <= r->budget_bytes, proven = is_proven(c, r);
    r->status = !fits                    ? REMAT_INFEASIBLE
                : proven                 ? REMAT_OPTIMAL
                : c->plan.answer.limited ? REMAT_LIMIT
                                         : REMAT_FEASIBLE;
    r->infeasible_proven = proven && !fits;
    if (r->infeasible_proven)
        r->overhead_lower_bound_percent = (double)INFINITY;
}

RematReport planner_report(Pool *pool, const Chosen *c, const Solve *base)
{
    RematReport r = {0};
    fill_figures(c, base, &r);
    fill_claims(pool, c, &r);
    return r;
}
