/* Recomputations that make the step fit its budget (docs/remat.md). */
#include "ir/support/clock.h"
#include "passes/pass.h"
#include "passes/remat/cache/memo.h"
#include "passes/remat/model/relax_pieces.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/report.h"
#include "passes/remat/solvers.h"
#include "passes/remat_pass_internal.h"
#include "passes/too_large.h"
#include "passes/views.h"

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

/* Solving */

/* What the plan of the step with these recomputations takes, pieces lying where pass_views puts
 * them. */
static int64_t planned_arena(const Solve *s, const RematSchedule *schedule, MemEffort effort)
{
    Pool *pool = pool_new_child(s->scratch);
    Graph *copy = graph_copy(pool, s->graph);
    remat_apply(copy, s->p, &s->mapping, schedule, "");
    int64_t arena = -1;
    Graph *views =
        s->request.no_views ? NULL : views_of(pool, copy, effort, s->ctx->places, &arena);
    if (!views || effort == MEMPLAN_FINAL)
        arena = memplan_graph(pool, views ? views : copy, effort, s->ctx->places)->arena_bytes;
    pool_free(pool);
    return arena;
}

static bool same_schedule(const RematSchedule *a, const RematSchedule *b)
{
    return a->len == b->len && memcmp(a->node, b->node, (size_t)a->len * sizeof *a->node) == 0;
}

/* What no such plan takes less than. */
static int64_t least_arena(const Solve *s, const RematSchedule *schedule)
{
    Pool *pool = pool_new_child(s->scratch);
    Graph *copy = graph_copy(pool, s->graph);
    remat_apply(copy, s->p, &s->mapping, schedule, "");
    int64_t bytes = s->p->persistent_bytes + views_load(pool, copy);
    pool_free(pool);
    return bytes;
}

/* Different targets often have the same answer: it is placed once.  Where no plan of it is within
 * most_bytes, it is not placed, and the arena is what it takes at least. */
static Planned plan_within(Solve *s, int64_t target, int64_t most_bytes)
{
    RematOptions o = s->options;
    Planned a = {.arena_bytes = 0};
    o.budget_bytes = target;
    o.notes = &a.notes;
    if (solve_has_front(s)) /* less memory is a smaller target */
        o.objective = REMAT_MIN_TIME;
    a.answer = remat_solve(s->p, s->request.solver, &o, s->scratch);
    for (size_t k = 0; k < s->tried.len; k++)
        if (same_schedule(&s->tried.data[k].answer.schedule, &a.answer.schedule))
            return s->tried.data[k];
    if (most_bytes < INT64_MAX)
        a.arena_bytes = least_arena(s, &a.answer.schedule);
    if (a.arena_bytes > most_bytes)
        return a;
    a.arena_bytes = planned_arena(s, &a.answer.schedule, MEMPLAN_TRIAL);
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
        if (out->arena_bytes > budget && out->answer.figures.recomputed == 0) /* worth more */
            out->arena_bytes = planned_arena(s, &out->answer.schedule, MEMPLAN_FINAL);
        int64_t peak = out->answer.peak_bytes, missed = out->arena_bytes - budget;
        if (missed <= 0)
            return true;
        if (peak > target)
            return false;
        target = peak - (k < SMALL_STEPS || missed < MEMPLAN_ALIGN ? MEMPLAN_ALIGN : missed);
    }
    return false;
}

/* A placement on trial may miss the load by more than another answer's is above it. */
static void place_tried(Solve *s, Planned *least)
{
    for (size_t k = 0; k < s->tried.len; k++) {
        Planned a = s->tried.data[k];
        if (a.arena_bytes <= least->arena_bytes ||
            least_arena(s, &a.answer.schedule) >= least->arena_bytes)
            continue;
        a.arena_bytes = planned_arena(s, &a.answer.schedule, MEMPLAN_FINAL);
        *least = a.arena_bytes < least->arena_bytes ? a : *least;
    }
}

/* Near the smallest arena views often cannot do what a schedule of contents hopes for, and one of
 * copies is smaller. */
static void try_with_copies(Solve *s, Planned *least)
{
    RematOptions o = s->options;
    Planned a = {.arena_bytes = 0};
    if (!s->options.context.pieces || !solve_has_front(s))
        return;
    o.budget_bytes = 0;
    o.notes = &a.notes;
    o.with_copies = true;
    a.answer = remat_solve(s->p, s->request.solver, &o, s->scratch);
    if (least_arena(s, &a.answer.schedule) >= least->arena_bytes)
        return;
    a.arena_bytes = planned_arena(s, &a.answer.schedule, MEMPLAN_FINAL);
    *least = a.arena_bytes < least->arena_bytes ? a : *least;
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
        if (find_within(s, least->arena_bytes - 1, &less)) {
            *least = less;
            is_final = false;
        } else if (is_final) {
            break;
        } else {
            least->arena_bytes = planned_arena(s, &least->answer.schedule, MEMPLAN_FINAL);
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
    if (solve_has_front(s)) {
        const Front *front = &s->options.context.memo->front;
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
    if (a.arena_bytes > budget)
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

/* Each node once, in the order there is, but for @recompute. */
static RematAnswer answer_as_it_is(Solve *s)
{
    RematOptions o = s->options;
    o.budget_bytes = INT64_MAX;
    o.objective = REMAT_MIN_TIME; /* the order stays */
    return remat_solve(s->p, remat_solver_find("none"), &o, s->scratch);
}

bool solve_fits_as_it_is(Solve *s, Planned *out)
{
    BudgetKind kind = s->request.budget.kind;
    if (!solve_has_front(s) || s->request.objective == REMAT_MIN_MEMORY || kind == BUDGET_NONE ||
        kind == BUDGET_MIN)
        return false;
    *out = (Planned){.answer = answer_as_it_is(s)};
    out->answer.solver = s->request.solver->name;
    const RematSchedule *schedule = &out->answer.schedule;
    if (out->answer.figures.recomputed > 0 || least_arena(s, schedule) > s->budget_bytes)
        return false;
    out->arena_bytes = planned_arena(s, schedule, MEMPLAN_TRIAL);
    if (out->arena_bytes > s->budget_bytes)
        out->arena_bytes = planned_arena(s, schedule, MEMPLAN_FINAL);
    return out->arena_bytes <= s->budget_bytes;
}

Planned solve_request(Solve *s)
{
    Planned as_it_is;
    if (s->request.budget.kind == BUDGET_NONE)
        return (Planned){.answer = answer_as_it_is(s)};
    if (solve_fits_as_it_is(s, &as_it_is))
        return as_it_is;
    if (s->request.budget.kind == BUDGET_MIN)
        s->budget_bytes = solve_least(s)->arena_bytes;
    bool wants_time = s->request.objective == REMAT_MIN_TIME;
    Planned a =
        wants_time || !solve_has_front(s) ? solve_arena(s, s->budget_bytes) : *solve_least(s);
    bool may_spend = wants_time && s->options.context.relaxed && a.arena_bytes <= s->budget_bytes &&
                     a.answer.figures.recomputed > 0;
    return may_spend ? spend_rest(s, a, s->budget_bytes) : a;
}

/* Hints */

static const char *why_not_recomputed(const RematProblem *p, const RematNode *node)
{
    if (!node->rerun)
        return "it updates a tensor in place";
    for (int k = 0; k < node->n_out; k++)
        if (p->tensor[node->out[k]].keep)
            return "it is a result of the step";
    return NULL;
}

/* Marks the nodes of which a value made before the loss is read after it. */
static void find_crossing(const RematProblem *p, const RematSchedule *s, bool *crosses)
{
    bool after_loss = false;
    bool *before = POOL_ARRAY(p->pool, (size_t)p->n_tensors + 1, bool); /* made before the loss */
    for (int i = 0; i < s->len; i++) {
        const RematNode *node = &p->node[s->node[i]];
        for (int k = 0; k < node->n_in && after_loss; k++)
            if (before[node->in[k]] && p->tensor[node->in[k]].producer >= 0)
                crosses[p->tensor[node->in[k]].producer] = true;
        for (int k = 0; k < node->n_out; k++)
            before[node->out[k]] = !after_loss;
        after_loss |= s->node[i] == p->loss_node;
    }
}

static bool refuse_hint(PassContext *ctx, const RematNode *node, const char *why)
{
    const char *hint = node->hint == REMAT_KEEP ? "keep" : "recompute",
               *message =
                   pool_printf(ctx->pool, "@%s of %s cannot be obeyed: %s", hint, node->name, why);
    return pass_refuse(ctx, &(RematError){"E402", message, "remove the annotation"});
}

static bool check_hints(Solve *s, const RematSchedule *schedule)
{
    const RematProblem *p = s->p;
    int *runs = POOL_ARRAY(s->scratch, (size_t)p->n_nodes + 1, int);
    bool *crosses = POOL_ARRAY(s->scratch, (size_t)p->n_nodes + 1, bool);
    for (int i = 0; i < schedule->len; i++)
        runs[schedule->node[i]]++;
    find_crossing(p, schedule, crosses);
    for (int n = 0; n < p->n_nodes; n++) {
        const RematNode *node = &p->node[n];
        const char *why = node->hint == REMAT_RECOMPUTE ? why_not_recomputed(p, node) : NULL;
        if (node->hint == REMAT_KEEP && runs[n] > 1)
            why = "solver recomputes it";
        if (node->hint == REMAT_RECOMPUTE && !why && crosses[n])
            why = "its value is needed across the loss";
        if (why)
            return refuse_hint(s->ctx, node, why);
    }
    return true;
}

/* Reporting */

/* No plan has an arena below bound_bytes. */
static RematStatus status_of(const Chosen *c, int64_t bound_bytes)
{
    if (c->plan.arena_bytes > c->of->budget_bytes)
        return REMAT_INFEASIBLE;
    bool is_best = c->of->request.objective == REMAT_MIN_MEMORY
                       ? c->plan.arena_bytes <= bound_bytes
                       : c->plan.answer.figures.recomputed == 0 && chosen_is_fastest(c);
    if (is_best)
        return REMAT_OPTIMAL;
    return c->plan.answer.limited ? REMAT_LIMIT : REMAT_FEASIBLE;
}

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

static void fill_report(const Chosen *c)
{
    const Solve *s = c->of, *base = c->base;
    RematReport *r = &s->ctx->report;
    const RematFigures *f = &c->plan.answer.figures;
    r->solver = c->plan.answer.solver;
    r->peak_bytes = f->peak_bytes;
    r->persistent_bytes = s->p->persistent_bytes;
    r->keep_all_peak_bytes = base->keep_all.peak_bytes;
    r->budget_bytes = s->budget_bytes;
    if (s->request.budget.kind == BUDGET_MIN)
        r->min_feasible_bytes = s->budget_bytes;
    r->recomputed_ops = f->recomputed;
    r->treewidth = c->plan.notes.treewidth;
    r->cost = s->request.costs.model;
    r->step_cost = f->time;
    r->base_cost = base->keep_all.time;
    r->overhead_percent = percent_more(f->time, r->base_cost);
    r->forward_percent = forward_percent(base->p);
    bound_report_limits(s->request.solver, &s->options, s->p, r);
    bound_report_fill(s->ctx->pool, s->p, &s->options.context, r);
    if (c->other)
        bound_report_also(s->ctx->pool, c->other->p, &c->other->options.context, r);
    r->status = status_of(c, r->lower_bound_bytes);
    r->infeasible_proven = r->lower_bound_bytes > r->budget_bytes;
}

static bool report_infeasible(Solve *s, int64_t smallest_arena_bytes)
{
    PassContext *ctx = s->ctx;
    ctx->report.min_feasible_bytes = smallest_arena_bytes;
    RematError e =
        bound_report_infeasible(ctx->pool, &ctx->report, s->request.budget, ", or a smaller batch");
    return pass_refuse(ctx, &e);
}

/* The step that the plan is of goes on. */
static bool use_plan(const Chosen *c)
{
    Solve *s = c->of;
    const RematAnswer *a = &c->plan.answer;
    PassContext *ctx = s->ctx;
    if (!check_hints(s, &a->schedule))
        return false;
    ctx->graph = s->graph;
    if (a->figures.recomputed > 0 || s->request.budget.kind != BUDGET_NONE)
        remat_apply(s->graph, s->p, &s->mapping, &a->schedule,
                    strcmp(a->solver, "none") == 0 ? "hint" : a->solver);
    return true;
}

static void relax(Solve *s)
{
    const RematPieces *bound = relax_pieces(s->scratch, s->graph, s->p, &s->mapping, PIECES_BOUND);
    s->options.context.relaxed = bound ? &bound->problem : NULL;
    s->options.context.pieces =
        relax_pieces(s->scratch, s->graph, s->p, &s->mapping, PIECES_LIKELY);
}

static Solve *solve_new(const Solve *request, Graph *g, struct RematMemo *memo)
{
    Solve *s = POOL_NEW(request->scratch, Solve);
    *s = *request;
    s->graph = g;
    s->p = remat_problem_from_graph(s->scratch, g, &s->request.costs, &s->mapping);
    if (!s->request.no_views)
        relax(s);
    s->options.context.memo = memo ? memo : remat_memo_new(s->scratch, NULL);
    RematSchedule base = remat_base_schedule(s->scratch, s->p);
    s->keep_all = remat_check(s->scratch, s->p, &base);
    s->budget_bytes =
        budget_bytes(s->request.budget, s->p->persistent_bytes, s->keep_all.peak_bytes);
    return s;
}

static bool meet_budget(const Solve *request)
{
    PassContext *ctx = request->ctx;
    struct RematMemo *memo = ctx->memo;
    Solve *s = solve_new(request, ctx->graph, memo), *whole = NULL;
    if (ctx->without_masks) {
        whole = solve_new(request, ctx->without_masks, memo ? remat_memo_second(memo) : NULL);
        ctx->masks.overhead_percent = percent_more(s->keep_all.time, whole->keep_all.time);
    }
    Chosen c = choose_step(s, whole);
    if (c.of == whole)
        ctx->masks = (MaskReport){0};
    fill_report(&c);
    return ctx->report.status == REMAT_INFEASIBLE ? report_infeasible(c.of, c.plan.arena_bytes)
                                                  : use_plan(&c);
}

bool pass_remat(PassContext *ctx)
{
    if (!memplan_is_countable(ctx->graph))
        return memplan_too_large(ctx);
    Solve request = {.ctx = ctx,
                     .scratch = pool_new_child(ctx->pool),
                     .request = ctx->request,
                     .options = plan_request_options(&ctx->request)};
    double deadline = request.options.deadline_seconds;
    request.request.budget.of_bytes = ctx->masks.whole_peak_bytes;
    request.options.context.bounds_until =
        deadline > 0 ? deadline + ctx->request.time_limit_seconds / 4 : 0;
    ctx->places = place_memo_new(ctx->pool, ctx->request.n_threads);
    double begin = clock_seconds();
    ctx->report = (RematReport){.solver = "none", .budget_bytes = INT64_MAX};
    bool ok = meet_budget(&request);
    ctx->report.solve_seconds = clock_seconds() - begin;
    pool_free(request.scratch);
    return ok;
}

PlanSettings remat_section(const TrainSpec *train)
{
    return (PlanSettings){.budget = train->budget_text,
                          .solver = train->solver,
                          .objective = train->objective,
                          .cost = train->cost};
}
