/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plans a step within a budget: a target for the peak, a schedule of the solvers, its size, and
 * again with a smaller target where that does not fit.  remat_plan is at the end. */
#include "passes/remat/planner_internal.h"

#include "ir/support/bug.h"
#include "passes/remat/bounds/bound.h"
#include "passes/remat/cache/solution_cache.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/order/reorder.h"
#include "passes/remat/solve.h"
#include "passes/remat/solvers.h"

#include <string.h>

/* How often the target is lowered because an arena missed its peak: at first to the next smaller
 * schedule, which for a solver that answers from one front finds the fastest whose arena fits; then
 * by what was missed. */
enum { SMALL_STEPS = 3, MAX_STEPS = 8, MAX_LEAST_STEPS = 8 };
/* Where arenas are smaller than peaks: how many of the targets above one that is too large are
 * tried; and targets for solvers without a front, which search again for each. */
enum { LOOK_AHEAD = 64, EVEN_TARGETS = 64, EVEN_LOOK_AHEAD = 2 };

typedef struct Targets {
    VEC(int64_t) peak; /* ascending, whatever the budget is */
    int look_ahead;
} Targets;

/* The solver asked for has one search for all budgets. */
static bool has_front(const Solve *s)
{
    return s->request->solver && s->request->solver->has_front;
}

/* What fits */

static int64_t least_bytes(const Solve *s, const RematSchedule *schedule)
{
    return s->step->arena->least(s->step->user, schedule);
}

static int64_t plan_bytes(const Solve *s, const RematAnswer *a, bool is_final)
{
    return s->step->arena->bytes(s->step->user, &a->schedule, is_final);
}

static RematAnswer solve(Solve *s, const RematOptions *o)
{
    RematAnswer a = remat_solve(s->ordered, s->request->solver, o, s->scratch);
    if (!s->order)
        return a;
    for (int i = 0; i < a.schedule.len; i++)
        a.schedule.node[i] = s->order[a.schedule.node[i]];
    a.figures = remat_check(s->scratch, s->p, &a.schedule);
    if (!a.figures.ok)
        BUG("solver %s made a wrong schedule: %s", a.solver->name, a.figures.fault);
    return a;
}

static bool same_schedule(const RematSchedule *a, const RematSchedule *b)
{
    return a->len == b->len && memcmp(a->node, b->node, (size_t)a->len * sizeof *a->node) == 0;
}

/* Different targets often have the same answer: it is placed once.  Where no plan of it is within
 * most_bytes, it is not placed, and the arena is what it takes at least. */
static Planned plan_within(Solve *s, int64_t target, int64_t most_bytes)
{
    RematOptions o = s->options;
    Planned a = {.bytes = 0};
    o.budget_bytes = target;
    o.notes = &a.notes;
    if (has_front(s) && s->step->arena) /* less memory is a smaller target */
        o.objective = REMAT_MIN_TIME;
    a.answer = solve(s, &o);
    if (!s->step->arena) {
        a.bytes = a.answer.figures.peak_bytes;
        return a;
    }
    for (size_t k = 0; k < s->tried.len; k++)
        if (same_schedule(&s->tried.data[k].answer.schedule, &a.answer.schedule))
            return s->tried.data[k];
    if (most_bytes < INT64_MAX)
        a.bytes = least_bytes(s, &a.answer.schedule);
    if (a.bytes > most_bytes)
        return a;
    a.bytes = plan_bytes(s, &a.answer, false);
    vec_push(s->scratch, &s->tried, a);
    return a;
}

static Planned plan_answer(Solve *s, int64_t target)
{
    return plan_within(s, target, INT64_MAX);
}

/* The budget is one of real bytes: where the plan of an answer exceeds it, the next answer must
 * have a smaller peak.  False when no arena was within the budget. */
static bool find_within(Solve *s, int64_t budget, Planned *out)
{
    int64_t target = budget;
    for (int k = 0; k <= MAX_STEPS; k++) {
        *out = plan_answer(s, target);
        if (out->bytes > budget && out->answer.figures.recomputed == 0) /* worth more */
            out->bytes = plan_bytes(s, &out->answer, true);
        int64_t peak = out->answer.peak_bytes, missed = out->bytes - budget;
        if (missed <= 0)
            return true;
        if (peak > target)
            return false;
        target = peak - (k < SMALL_STEPS || missed < s->step->arena->align ? s->step->arena->align
                                                                           : missed);
    }
    return false;
}

/* A placement on trial may miss the load by more than another answer's is above it. */
static void place_tried(Solve *s, Planned *least)
{
    for (size_t k = 0; k < s->tried.len; k++) {
        Planned a = s->tried.data[k];
        if (a.bytes <= least->bytes || least_bytes(s, &a.answer.schedule) >= least->bytes)
            continue;
        a.bytes = plan_bytes(s, &a.answer, true);
        *least = a.bytes < least->bytes ? a : *least;
    }
}

/* Near the smallest arena views often cannot do what a schedule of contents hopes for, and one of
 * copies is smaller. */
static void try_with_copies(Solve *s, Planned *least)
{
    RematOptions o = s->options;
    Planned a = {.bytes = 0};
    if (!s->options.context.pieces || !has_front(s))
        return;
    o.budget_bytes = 0;
    o.notes = &a.notes;
    o.with_copies = true;
    a.answer = solve(s, &o);
    if (least_bytes(s, &a.answer.schedule) >= least->bytes)
        return;
    a.bytes = plan_bytes(s, &a.answer, true);
    *least = a.bytes < least->bytes ? a : *least;
}

/* The smallest arena, as the plan that is kept will have it.  It need not be that of the smallest
 * peak, whose placement may miss its peak by more: a byte less is asked for until that is refused.
 */
static const Planned *solve_least(Solve *s)
{
    if (s->least)
        return s->least;
    Planned *least = s->least = POOL_NEW(s->scratch, Planned), less;
    *least = plan_answer(s, 0);
    bool is_final = false;
    for (int k = 0; k < MAX_LEAST_STEPS; k++) {
        if (find_within(s, least->bytes - 1, &less)) {
            *least = less;
            is_final = false;
        } else if (is_final) {
            break;
        } else {
            least->bytes = plan_bytes(s, &least->answer, true);
            is_final = true;
        }
    }
    place_tried(s, least);
    try_with_copies(s, least);
    return least;
}

/* A budget is met when the smallest arena is within it. */
static Planned solve_arena(Solve *s, int64_t budget)
{
    Planned a;
    return find_within(s, budget, &a) ? a : *solve_least(s);
}

/* Those of the front that scrimp answers from, even steps for other solvers. */
static void list_targets(Solve *s, Targets *out)
{
    out->look_ahead = LOOK_AHEAD;
    if (has_front(s)) {
        const ParetoFront *front = &s->options.context.solution_cache->front;
        for (size_t k = 0; k < front->points.len; k++)
            vec_push(s->scratch, &out->peak, front->points.data[k].peak_bytes);
        return;
    }
    out->look_ahead = EVEN_LOOK_AHEAD;
    int64_t low = s->p->persistent_bytes, step = (s->keep_all.peak_bytes - low) / EVEN_TARGETS;
    for (int k = 1; k <= EVEN_TARGETS; k++)
        vec_push(s->scratch, &out->peak,
                 k < EVEN_TARGETS ? low + k * step : s->keep_all.peak_bytes);
}

/* The plan for the k-th target is within the budget. */
static bool try_target(Solve *s, const Targets *t, int k, int64_t budget, Planned *best)
{
    Planned a = plan_within(s, t->peak.data[k], budget);
    if (a.bytes > budget)
        return false;
    if (a.answer.figures.time < best->answer.figures.time)
        *best = a;
    return true;
}

/* Where pieces lie inside the whole, arenas may be smaller than peaks, and the fastest answer whose
 * arena is within the budget may have a peak above it.  Arenas rise with the targets, by and large:
 * a search by halves, and then upwards as long as one of the next few is within the budget as well.
 *
 * More budget never ends at a smaller target.  The halves: both budgets go the same way until a
 * target is within the larger one only, and end on either side of it.  The rest: were its end below
 * that of the smaller budget, then so would be a place from which the smaller budget reaches one
 * above it within a few; that is near enough to the end, and within the larger budget, too.  What
 * is at or below `best` counts as within the budget, which holds if best itself never falls. */
static Planned spend_rest(Solve *s, Planned best, int64_t budget)
{
    Targets t = {0};
    list_targets(s, &t);
    int64_t reached = best.answer.peak_bytes;
    int low = -1, high = (int)t.peak.len;
    while (high - low > 1) {
        int mid = low + (high - low) / 2;
        if (t.peak.data[mid] <= reached || try_target(s, &t, mid, budget, &best))
            low = mid;
        else
            high = mid;
    }
    for (int k = low + t.look_ahead; k > low; k--)
        if (k < (int)t.peak.len && try_target(s, &t, k, budget, &best)) {
            low = k;
            k += t.look_ahead + 1;
        }
    return best;
}

/* The step as it is */

/* Each node once, in the order there is, but for @recompute. */
static RematAnswer answer_as_it_is(Solve *s)
{
    RematOptions o = s->options;
    o.budget_bytes = INT64_MAX;
    o.objective = REMAT_MIN_TIME; /* the order stays */
    return remat_solve(s->p, remat_solver_find("none"), &o, s->scratch);
}

/* No search is needed: the arena of the step with each node once, in the order there is, fits the
 * budget, and time is asked for of a solver that would find that.  What fits is a question of
 * arenas here, as in all of this file; scrimp's own shortcut (base_is_best) is about the problem it
 * is given and its peak, with budgets that are targets for the peak and not the user's. */
bool planner_fits_as_it_is(Solve *s, Planned *out)
{
    BudgetKind kind = s->request->budget.kind;
    if (!has_front(s) || s->request->objective == REMAT_MIN_MEMORY || kind == BUDGET_NONE ||
        kind == BUDGET_MIN)
        return false;
    *out = (Planned){.answer = answer_as_it_is(s)};
    out->answer.solver = s->request->solver;
    if (out->answer.figures.recomputed > 0 ||
        least_bytes(s, &out->answer.schedule) > s->budget_bytes)
        return false;
    out->bytes = plan_bytes(s, &out->answer, false);
    if (out->bytes > s->budget_bytes)
        out->bytes = plan_bytes(s, &out->answer, true);
    return out->bytes <= s->budget_bytes;
}

/* The order with the least peak comes first and recomputation second; it does not depend on the
 * budget. */
static void find_order(Solve *s, double until)
{
    RematSchedule order = reorder_nodes(s->scratch, s->p, 0, until);
    RematFigures f = remat_check(s->scratch, s->p, &order);
    if (!f.ok || f.peak_bytes >= s->keep_all.peak_bytes)
        return;
    s->ordered = remat_expand(s->scratch, s->p, &order);
    s->order = order.node;
}

/* What the request asks for */

/* Where the peak has to fit, solvers meet the budget themselves.  Half the time is for the order,
 * which comes first. */
static Planned plan_by_peak(Solve *s)
{
    double limit = s->request->time_limit_seconds;
    find_order(s, limit > 0 ? s->options.deadline_seconds - limit / 2 : 0);
    if (s->request->budget.kind == BUDGET_MIN)
        s->budget_bytes = plan_answer(s, 0).bytes;
    return plan_answer(s, s->budget_bytes);
}

static Planned plan_by_arena(Solve *s)
{
    bool wants_time = s->request->objective == REMAT_MIN_TIME;
    if (s->request->budget.kind == BUDGET_MIN)
        s->budget_bytes = solve_least(s)->bytes;
    Planned a = wants_time || !has_front(s) ? solve_arena(s, s->budget_bytes) : *solve_least(s);
    bool may_spend = wants_time && s->options.context.relaxed && a.bytes <= s->budget_bytes &&
                     a.answer.figures.recomputed > 0;
    return may_spend ? spend_rest(s, a, s->budget_bytes) : a;
}

Planned planner_plan(Solve *s)
{
    Planned as_it_is;
    bool by_peak = !s->step->arena;
    if (s->request->budget.kind == BUDGET_NONE)
        return (Planned){.answer = answer_as_it_is(s),
                         .bytes = by_peak ? s->keep_all.peak_bytes : 0};
    if (by_peak)
        return plan_by_peak(s);
    return planner_fits_as_it_is(s, &as_it_is) ? as_it_is : plan_by_arena(s);
}

/* The plan */

/* Where solvers meet the budget themselves, a quarter of the time is for the bounds they ask for,
 * and orders end with it; arenas are asked for again and again. */
static void divide_time(Solve *s)
{
    double limit = s->request->time_limit_seconds, deadline = s->options.deadline_seconds;
    SolveContext *c = &s->options.context;
    if (!(limit > 0))
        return;
    c->bounds_until = s->step->arena ? deadline + limit / 4 : deadline - limit + limit / 4;
    c->orders_until = s->step->arena ? 0 : deadline;
}

static Solve *solve_new(Pool *pool, const PlanRequest *request, const RematOptions *o,
                        PlanStep *step)
{
    Solve *s = POOL_NEW(pool, Solve);
    *s = (Solve){.request = request, .options = *o, .step = step, .p = step->p, .scratch = pool};
    s->ordered = s->p;
    s->options.context = step->context;
    if (!step->context.solution_cache)
        s->options.context.solution_cache = solution_cache_new(pool, NULL);
    divide_time(s);
    RematSchedule base = remat_base_schedule(pool, s->p);
    s->keep_all = step->keep_all = remat_check(pool, s->p, &base);
    if (!s->keep_all.ok)
        BUG("the order of a step does not replay: %s", s->keep_all.fault);
    return s;
}

bool remat_plan(Pool *pool, const PlanRequest *request, double begin, const PlanForms *forms,
                RematPlan *out, RematError *error)
{
    Pool *scratch = pool_new_child(pool);
    RematOptions o = plan_request_options(request, begin);
    Solve **all = POOL_ARRAY(scratch, (size_t)forms->n, Solve *), *base = NULL;
    for (int i = 0; i < forms->n; i++) {
        all[i] = solve_new(scratch, request, &o, forms->form[i]);
        base = forms->form[i] == forms->base ? all[i] : base;
    }
    for (int i = 0; i < forms->n; i++)
        all[i]->budget_bytes =
            budget_bytes(request->budget, base->p->persistent_bytes, base->keep_all.peak_bytes);
    Chosen c = planner_choose(scratch, all, forms->n);
    const RematAnswer *a = &c.plan.answer;
    *out = (RematPlan){.step = c.of->step,
                       .schedule = remat_schedule_copy(pool, &a->schedule),
                       .figures = a->figures,
                       .solver = a->solver,
                       .report = planner_report(pool, &c, base)};
    bool fits = out->report.status != REMAT_INFEASIBLE;
    if (!fits) {
        out->report.min_feasible_bytes = c.plan.bytes;
        *error = bound_report_infeasible(pool, &out->report, request->budget, c.of->step->way_out);
    }
    pool_free(scratch);
    return fits;
}
