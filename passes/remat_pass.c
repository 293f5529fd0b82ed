/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recomputations that make the step fit its budget (docs/remat.md): the step of the IR becomes a
 * problem, and with its masks and without them one for the planner; the plan becomes the step. */
#include "ir/support/clock.h"
#include "passes/loop_checkpoints.h"
#include "passes/pass.h"
#include "passes/remat/cache/solution_cache.h"
#include "passes/remat/model/relax_pieces.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/planner.h"
#include "passes/too_large.h"
#include "passes/views.h"

#include <math.h>
#include <string.h>

/* The step with masks, or without. */
typedef struct Form {
    PassContext *ctx;
    Pool *scratch;
    Graph *graph;
    RematMapping mapping;
    PlanStep step;
} Form;

/* What fits: pieces lie where pass_views puts them */

static Graph *planned_graph(const Form *f, Pool *pool, const RematSchedule *schedule)
{
    Graph *copy = graph_copy(pool, f->graph);
    remat_apply(copy, f->step.p, &f->mapping, schedule, "");
    return copy;
}

static int64_t arena_bytes(void *user, const RematSchedule *schedule, bool is_final)
{
    const Form *f = user;
    const PassContext *ctx = f->ctx;
    MemEffort effort = is_final ? MEMPLAN_FINAL : MEMPLAN_TRIAL;
    Pool *pool = pool_new_child(f->scratch);
    Graph *copy = planned_graph(f, pool, schedule);
    int64_t arena = -1;
    Graph *views =
        ctx->request.no_views ? NULL : views_of(pool, copy, effort, ctx->placement_cache, &arena);
    if (!views || is_final)
        arena =
            memplan_graph(pool, views ? views : copy, effort, ctx->placement_cache)->arena_bytes;
    pool_free(pool);
    return arena;
}

static int64_t least_arena_bytes(void *user, const RematSchedule *schedule)
{
    const Form *f = user;
    Pool *pool = pool_new_child(f->scratch);
    int64_t bytes =
        f->step.p->persistent_bytes + views_load(pool, planned_graph(f, pool, schedule));
    pool_free(pool);
    return bytes;
}

static const PlanArena step_arena = {least_arena_bytes, arena_bytes, MEMPLAN_ALIGN};

static Form *form_new(PassContext *ctx, Pool *scratch, Graph *g, struct SolutionCache *cache)
{
    Form *f = POOL_NEW(scratch, Form);
    *f = (Form){.ctx = ctx, .scratch = scratch, .graph = g};
    const RematProblem *p = remat_problem_from_graph(scratch, g, &ctx->request.costs, &f->mapping);
    f->step = (PlanStep){
        .p = p,
        .context.solution_cache = cache,
        .arena = &step_arena,
        .user = f,
        .cost = ctx->request.costs.model,
        .way_out = ctx->library
                       ? ", or a smaller batch, or --exact, which needs no workspace of a library"
                       : ", or a smaller batch"};
    if (ctx->request.no_views)
        return f;
    const AliasedProblem *bound = relax_pieces(scratch, g, p, &f->mapping, RELAX_PROVEN);
    f->step.context.relaxed = bound ? &bound->problem : NULL;
    f->step.context.pieces = relax_pieces(scratch, g, p, &f->mapping, RELAX_HEURISTIC);
    return f;
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

static bool refuse_hint(PassContext *ctx, const RematNode *node, const char *why)
{
    const char *hint = node->hint == REMAT_KEEP ? "keep" : "recompute",
               *message =
                   pool_printf(ctx->pool, "@%s of %s cannot be obeyed: %s", hint, node->name, why);
    return pass_fail(ctx, "E402", message, "remove the annotation");
}

static bool check_hints(Form *f, const RematSchedule *schedule)
{
    const RematProblem *p = f->step.p;
    int *runs = POOL_ARRAY(f->scratch, (size_t)p->n_nodes + 1, int);
    const bool *crosses = remat_crossing(f->scratch, p, schedule);
    for (int i = 0; i < schedule->len; i++)
        runs[schedule->node[i]]++;
    for (int n = 0; n < p->n_nodes; n++) {
        const RematNode *node = &p->node[n];
        const char *why = node->hint == REMAT_RECOMPUTE ? why_not_recomputed(p, node) : NULL;
        if (node->hint == REMAT_KEEP && runs[n] > 1)
            why = "solver recomputes it";
        if (node->hint == REMAT_RECOMPUTE && !why && crosses[n])
            why = "its value is needed across the loss";
        if (why)
            return refuse_hint(f->ctx, node, why);
    }
    return true;
}

/* The pass */

/* The step that the plan is of goes on. */
static bool use_plan(Form *f, const RematPlan *plan)
{
    PassContext *ctx = f->ctx;
    if (!check_hints(f, &plan->schedule))
        return false;
    ctx->graph = f->graph;
    if (plan->figures.recomputed > 0 || ctx->request.budget.kind != BUDGET_NONE)
        remat_apply(f->graph, f->step.p, &f->mapping, &plan->schedule,
                    plan->solver->obeys_only ? "hint" : plan->solver->name);
    return true;
}

/* What masks add to the time of a step. */
static double mask_percent(const RematFigures *with, const RematFigures *without)
{
    return without->time > 0 ? 100 * (with->time - without->time) / without->time : 0;
}

static bool plan_step(PassContext *ctx, Pool *scratch, double begin)
{
    PlanRequest request = ctx->request;
    struct SolutionCache *cache = ctx->solution_cache;
    Form *whole = NULL, *f = form_new(ctx, scratch, ctx->graph, cache);
    RematPlan plan;
    if (ctx->without_masks) {
        whole =
            form_new(ctx, scratch, ctx->without_masks, cache ? solution_cache_second(cache) : NULL);
        f->step.other = &whole->step;
    }
    request.budget.of_bytes = ctx->masks.whole_peak_bytes;
    bool fits = remat_plan(ctx->pool, &request, begin, &f->step, &plan, &ctx->error);
    ctx->report = plan.report;
    if (whole)
        ctx->masks.overhead_percent = mask_percent(&f->step.keep_all, &whole->step.keep_all);
    if (plan.step != &f->step)
        ctx->masks = (MaskReport){0};
    return fits && use_plan(plan.step == &f->step ? f : whole, &plan);
}

/* Loops that keep fewer of their carries (loop_checkpoints.h).  Each form of the step is planned as
 * if it were the only one, and the best plan is taken. */

typedef struct LoopForm {
    int loops, levels; /* see loops_checkpoint */
} LoopForm;

enum { MOST_LOOPS = 4 }; /* whose forms are tried one more at a time */

/* The next form: the first loops with one level, then all of them with two.  False: there is none.
 */
static bool next_form(LoopForm *form, int n_loops)
{
    int one_by_one = n_loops < MOST_LOOPS ? n_loops : MOST_LOOPS;
    if (n_loops == 0 || form->levels == 2)
        return false;
    form->levels = form->loops == n_loops ? 2 : 1;
    if (form->levels == 1)
        form->loops = form->loops + 1 < one_by_one ? form->loops + 1 : n_loops;
    return true;
}

static Graph *form_of(Pool *pool, const Graph *g, LoopForm form, const char **text)
{
    if (!g || form.loops == 0)
        return g ? graph_copy(pool, g) : NULL;
    Graph *copy = graph_copy(pool, g);
    *text = loops_checkpoint(copy, form.loops, form.levels);
    return copy;
}

static double absolute_bound(const RematReport *r)
{
    return r->base_cost * (1 + r->overhead_lower_bound_percent / 100);
}

/* What holds for all forms, beside the figures of the best: times are compared with the step as it
 * is, and a bound is the lowest of all. */
static void join_reports(RematReport *best, const RematReport *plain, const RematReport *lowest,
                         double time_bound, int64_t least)
{
    const double base = plain->base_cost;
    best->base_cost = base;
    best->keep_all_peak_bytes = plain->keep_all_peak_bytes;
    best->overhead_percent = base > 0 ? 100 * (best->step_cost / base - 1) : 0;
    best->overhead_lower_bound_percent = base > 0 ? 100 * (time_bound / base - 1) : 0;
    best->lower_bound_bytes = lowest->lower_bound_bytes;
    best->bound_node = lowest->bound_node;
    best->bound_workspace_bytes = lowest->bound_workspace_bytes;
    best->bound_tensors = lowest->bound_tensors;
    best->n_bound_tensors = lowest->n_bound_tensors;
    best->order_bound_bytes = 0;
    best->min_feasible_bytes = least < best->min_feasible_bytes ? least : best->min_feasible_bytes;
    best->infeasible_proven =
        best->infeasible_proven && lowest->lower_bound_bytes > best->budget_bytes;
}

static bool is_better(const PassContext *ctx, bool fits, const RematReport *a, bool best_fits,
                      const RematReport *best)
{
    if (fits != best_fits)
        return fits;
    if (!fits)
        return a->min_feasible_bytes < best->min_feasible_bytes;
    bool memory =
        ctx->request.objective == REMAT_MIN_MEMORY || ctx->request.budget.kind == BUDGET_MIN;
    if (memory && a->peak_bytes != best->peak_bytes)
        return a->peak_bytes < best->peak_bytes;
    return a->step_cost < best->step_cost;
}

static bool plan_forms(PassContext *ctx, Pool *scratch, double begin)
{
    int n_loops = ctx->request.budget.kind == BUDGET_NONE ? 0 : loops_with_states(ctx->graph);
    if (n_loops == 0)
        return plan_step(ctx, scratch, begin);
    PassContext best = *ctx, plain = {0};
    LoopForm form = {0};
    bool fits = false, any = false;
    double time_bound = INFINITY;
    RematReport lowest = {.lower_bound_bytes = INT64_MAX};
    int64_t least = INT64_MAX;
    do {
        PassContext trial = *ctx;
        const char *text = NULL;
        trial.graph = form_of(ctx->pool, ctx->graph, form, &text);
        trial.without_masks = form_of(ctx->pool, ctx->without_masks, form, &text);
        trial.solution_cache = any ? NULL : ctx->solution_cache;
        if (any && !trial.masks.whole_peak_bytes)
            trial.masks.whole_peak_bytes = plain.report.keep_all_peak_bytes;
        bool ok = plan_step(&trial, scratch, begin);
        if (!ok && strcmp(trial.error.code, "E401") != 0) {
            ctx->error = trial.error;
            return false;
        }
        trial.report.loops = text;
        time_bound = fmin(time_bound, absolute_bound(&trial.report));
        if (trial.report.lower_bound_bytes < lowest.lower_bound_bytes)
            lowest = trial.report;
        if (trial.report.min_feasible_bytes < least)
            least = trial.report.min_feasible_bytes;
        if (!any)
            plain = trial;
        if (!any || is_better(ctx, ok, &trial.report, fits, &best.report)) {
            best = trial;
            fits = ok;
        }
        any = true;
        bool free_of_charge = ok && form.loops == 0 && trial.report.overhead_percent <= 0 &&
                              ctx->request.budget.kind != BUDGET_MIN;
        if (free_of_charge && ctx->request.objective != REMAT_MIN_MEMORY)
            break;
    } while (next_form(&form, n_loops));
    join_reports(&best.report, &plain.report, &lowest, time_bound, least);
    ctx->graph = best.graph;
    ctx->masks = best.masks;
    ctx->report = best.report;
    ctx->error = best.error;
    return fits;
}

bool pass_remat(PassContext *ctx)
{
    if (!memplan_is_countable(ctx->graph))
        return memplan_too_large(ctx);
    Pool *scratch = pool_new_child(ctx->pool);
    double begin = clock_seconds();
    ctx->placement_cache = placement_cache_new(ctx->pool, ctx->request.n_threads);
    bool ok = plan_forms(ctx, scratch, begin);
    ctx->report.solve_seconds = clock_seconds() - begin;
    pool_free(scratch);
    return ok;
}

PlanSettings remat_section(const TrainSpec *train)
{
    return (PlanSettings){.budget = train->budget_text,
                          .solver = train->solver,
                          .objective = train->objective,
                          .cost = train->cost};
}
