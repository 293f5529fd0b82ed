/* A graph from elsewhere and a budget -> the best schedule. */
#include "passes/remat/external/external.h"

#include "ir/support/bug.h"
#include "ir/support/clock.h"
#include "passes/remat/cache/memo.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/order/reorder.h"
#include "passes/remat/report.h"
#include "passes/remat/solve.h"
#include "passes/remat/solvers.h"

#include <math.h>
#include <string.h>

typedef struct Planning {
    Pool *pool;
    RematProblem *p;
    RematProblem *ordered; /* p in an order with a smaller peak, or p */
    const int *order;      /* node of ordered -> node of p; NULL when they are the same */
    RematProblem *every;   /* p with every run that the file allows; NULL: that is p */
    PlanRequest request;
    RematOptions options; /* without the budget; the deadline counts from external_plan */
    double orders_until, bounds_until; /* with a time limit: when the search for an order and the
                                          bounds that are reported end; else 0 */
    struct RematMemo *memo;
    RematNotes notes;
} Planning;

/* Graphs from elsewhere stand in any order.  As for our own, the order with the least peak comes
 * first and recomputation second; it does not depend on the budget. */
static void find_order(Planning *s, const RematFigures *given)
{
    RematSchedule order = reorder_nodes(s->pool, s->p, 0, s->orders_until);
    RematFigures f = remat_check(s->pool, s->p, &order);
    if (!f.ok || f.peak_bytes >= given->peak_bytes)
        return;
    s->ordered = remat_expand(s->pool, s->p, &order);
    s->order = order.node;
}

/* A quarter for the bounds that solvers ask for; half for the order, which comes first, so that the
 * solver has the other half. */
static void divide_time(Planning *s, double begin, double limit_seconds)
{
    if (!(limit_seconds > 0))
        return;
    s->options.context.bounds_until = begin + limit_seconds / 4;
    s->orders_until = begin + limit_seconds / 2;
    s->bounds_until = s->options.deadline_seconds + limit_seconds / 4;
}

static RematAnswer solve(Planning *s, int64_t budget_bytes)
{
    RematOptions o = s->options;
    o.budget_bytes = budget_bytes;
    o.notes = &s->notes;
    RematAnswer a = remat_solve(s->ordered, s->request.solver, &o, s->pool);
    for (int i = 0; s->order && i < a.schedule.len; i++)
        a.schedule.node[i] = s->order[a.schedule.node[i]];
    a.figures = remat_check(s->pool, s->p, &a.schedule);
    if (!a.figures.ok)
        BUG("solver %s made a wrong schedule: %s", a.solver, a.figures.fault);
    return a;
}

/* Nothing in b is better than a, both within the budget or not. */
static bool is_as_good(const Planning *s, const RematAnswer *a, const RematAnswer *b,
                       int64_t budget_bytes)
{
    if (a->figures.peak_bytes > budget_bytes)
        return b->figures.peak_bytes > budget_bytes;
    return s->request.objective == REMAT_MIN_MEMORY ? b->figures.peak_bytes >= a->figures.peak_bytes
                                                    : b->figures.time >= a->figures.time;
}

/* What the bounds alone prove of an answer or a refusal.  A time that is not above that of running
 * each node once is the least that there is. */
static bool is_proven_by_bounds(const Planning *s, const RematAnswer *a, const RematReport *report)
{
    if (a->figures.peak_bytes > report->budget_bytes)
        return report->lower_bound_bytes > report->budget_bytes ||
               isinf(report->overhead_lower_bound_percent);
    return s->request.objective == REMAT_MIN_MEMORY
               ? a->figures.peak_bytes <= report->lower_bound_bytes
               : a->figures.time <= a->figures.time_once;
}

/* The same by exact search.  The solver's own counts only with the runs that we allow ourselves:
 * where the file allows more, they are searched as well. */
static bool is_proven_by_search(Planning *s, const RematAnswer *a, int64_t budget_bytes)
{
    if (!s->notes.exact || !s->every)
        return s->notes.exact;
    RematNotes notes = {0};
    RematOptions o = s->options;
    o.budget_bytes = budget_bytes;
    o.notes = &notes;
    o.context.memo = remat_memo_second(s->options.context.memo);
    RematAnswer b = remat_solve(s->every, remat_solver_find("scrimp"), &o, s->pool);
    return notes.exact && is_as_good(s, a, &b, budget_bytes);
}

/* Without a budget the order stays as it is. */
static RematAnswer answer_request(Planning *s, const RematFigures *given, RematReport *report)
{
    Budget budget = s->request.budget;
    report->budget_bytes = budget_bytes(budget, s->p->persistent_bytes, given->peak_bytes);
    if (budget.kind == BUDGET_NONE) {
        RematAnswer a = {"none", remat_base_schedule(s->pool, s->p), *given, given->peak_bytes,
                         false};
        return a;
    }
    find_order(s, given);
    s->options.context.orders_until = s->options.deadline_seconds;
    s->options.context.memo = s->memo ? s->memo : remat_memo_new(s->pool, NULL);
    if (budget.kind == BUDGET_MIN)
        report->budget_bytes = report->min_feasible_bytes = solve(s, 0).figures.peak_bytes;
    return solve(s, report->budget_bytes);
}

static void fill_figures(const RematAnswer *a, const RematProblem *p, RematReport *report)
{
    const RematFigures *f = &a->figures;
    report->solver = a->solver;
    report->persistent_bytes = p->persistent_bytes;
    report->peak_bytes = f->peak_bytes;
    report->recomputed_ops = f->recomputed;
    report->base_cost = f->time_once;
    report->overhead_percent = f->time_once > 0 ? 100 * (f->time - f->time_once) / f->time_once : 0;
}

/* Bounds, and what is claimed of the answer, hold for every schedule that the file allows. */
static void fill_claims(Planning *s, const RematAnswer *a, RematReport *report)
{
    bound_report_limits(s->request.solver, &s->options, s->p, report);
    const SolveContext c = {.bounds_until = s->bounds_until};
    bound_report_fill(s->pool, s->every ? s->every : s->p, &c, report);
    bool proven =
        is_proven_by_bounds(s, a, report) || is_proven_by_search(s, a, report->budget_bytes);
    bool fits = a->figures.peak_bytes <= report->budget_bytes;
    report->status = !fits        ? REMAT_INFEASIBLE
                     : proven     ? REMAT_OPTIMAL
                     : a->limited ? REMAT_LIMIT
                                  : REMAT_FEASIBLE;
    report->infeasible_proven = proven && !fits;
    if (report->infeasible_proven)
        report->overhead_lower_bound_percent = (double)INFINITY;
}

bool external_plan(Pool *pool, const ExternalGraph *g, const PlanRequest *request,
                   struct RematMemo *memo, ExternalPlan *out, RematError *error)
{
    double begin = clock_seconds();
    *out = (ExternalPlan){.report = {.solver = "none"}};
    Planning s = {
        .pool = pool, .request = *request, .options = plan_request_options(request), .memo = memo};
    s.p = s.ordered = external_problem(pool, g, error);
    if (!s.p)
        return false;
    divide_time(&s, begin, request->time_limit_seconds);
    s.every = external_every_rerun(pool, g, s.p);
    RematSchedule base = remat_base_schedule(pool, s.p);
    RematFigures given = remat_check(pool, s.p, &base);
    if (!given.ok)
        BUG("the order of an external graph does not replay: %s", given.fault);
    out->report.keep_all_peak_bytes = given.peak_bytes;
    RematAnswer a = answer_request(&s, &given, &out->report);
    out->schedule = a.schedule;
    out->figures = a.figures;
    out->report.treewidth = s.notes.treewidth;
    fill_figures(&a, s.p, &out->report);
    fill_claims(&s, &a, &out->report);
    out->report.solve_seconds = clock_seconds() - begin;
    if (out->report.status != REMAT_INFEASIBLE) {
        external_arena(pool, s.p, &a.schedule, remat_out_of_time(&s.options), out);
        return true;
    }
    out->report.min_feasible_bytes = out->report.peak_bytes;
    *error = bound_report_infeasible(pool, &out->report, s.request.budget, "");
    return false;
}
