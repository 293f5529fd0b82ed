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

#include <string.h>

/* The step with masks, or without; with loops that keep fewer of their carries. */
typedef struct Form {
    PassContext *ctx;
    bool masks, again; /* again: loops' gradients compute steps again */
    bool plain;        /* normalized images are tensors */
    const char *loops; /* as in the report */
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

/* Loops that keep fewer of their carries: the first of them, one more with each form, then all with
 * two levels.  With more loops than MOST_LOOPS the last of these steps takes the rest.  The same of
 * the step whose loops compute their steps again, where they all change at once. */
enum { MOST_LOOPS = 4, MOST_FORMS = 2 * (1 + MOST_LOOPS + 1) + 2 * (1 + 2) + 2 };

typedef struct Forms {
    PassContext *ctx;
    Pool *scratch;
    Form *form[MOST_FORMS];
    PlanStep *step[MOST_FORMS]; /* of these */
    int n;
    struct SolutionCache *cache; /* for the next; NULL: there is none */
} Forms;

static Form *add_form(Forms *f, Graph *g, bool masks)
{
    Form *form = form_new(f->ctx, f->scratch, g, f->cache);
    form->masks = masks;
    f->cache = f->cache ? solution_cache_second(f->cache) : NULL;
    f->step[f->n] = &form->step;
    return f->form[f->n++] = form;
}

static void add_loop_form(Forms *f, Graph *g, bool masks, bool again, const char *text)
{
    static const char also[] = "gradients compute steps again";
    Form *form = add_form(f, g, masks);
    form->again = again;
    form->loops = !again ? text : *text ? pool_printf(f->ctx->pool, "%s; %s", text, also) : also;
    form->step.runs_again = true;
}

/* One loop more with each form, or all at once. */
static void add_checkpoints(Forms *f, const Graph *g, bool masks, bool again)
{
    int n = loops_with_states(g), one_by_one = n < MOST_LOOPS ? n : MOST_LOOPS;
    for (int i = again ? one_by_one : 1; i <= one_by_one + 1 && n > 0; i++) {
        bool twice = i > one_by_one;
        Graph *copy = graph_copy(g->pool, g);
        const char *text = loops_checkpoint(copy, i < one_by_one ? i : n, twice ? 2 : 1);
        add_loop_form(f, copy, masks, again, text);
    }
}

static void add_loop_forms(Forms *f, const Graph *g, Graph *again, bool masks)
{
    if (g)
        add_checkpoints(f, g, masks, false);
    if (!again)
        return;
    add_loop_form(f, again, masks, true, "");
    add_checkpoints(f, again, masks, true);
}

/* The step whose normalized images are tensors, with masks and without, which is what the user
 * wrote; without such a step: otherwise. */
static Form *add_plain_forms(Forms *f, Form *otherwise)
{
    const PassContext *plain = f->ctx->plain;
    if (!plain)
        return otherwise;
    Form *form = add_form(f, plain->graph, true);
    form->plain = form->step.is_finer = true;
    if (plain->without_masks)
        form = add_form(f, plain->without_masks, false);
    form->plain = true;
    return form;
}

/* The gradients of some loops read more than what steps begin with. */
static bool keeps_less(const PassContext *ctx)
{
    return ctx->again &&
           loops_bytes_of_states(ctx->again->graph) < loops_bytes_of_states(ctx->graph);
}

static bool plan_forms(PassContext *ctx, Pool *scratch, double begin)
{
    PlanRequest request = ctx->request;
    Forms f = {.ctx = ctx, .scratch = scratch, .cache = ctx->solution_cache};
    const Graph *graph[2] = {ctx->graph, ctx->without_masks};
    Form *first = add_form(&f, ctx->graph, true), *whole = NULL;
    if (ctx->without_masks)
        whole = add_form(&f, ctx->without_masks, false);
    Form *base = add_plain_forms(&f, whole ? whole : first);
    PassContext *again = keeps_less(ctx) ? ctx->again : NULL;
    Graph *again_graph[2] = {again ? again->graph : NULL, again ? again->without_masks : NULL};
    for (int i = 0; i < 2 && request.budget.kind != BUDGET_NONE; i++)
        add_loop_forms(&f, graph[i], again_graph[i], i == 0);
    ctx->again = NULL; /* no pass behind this one has a use for it */
    RematPlan plan;
    const PlanForms forms = {f.step, f.n, &base->step};
    request.budget.of_bytes =
        ctx->plain ? ctx->plain->masks.whole_peak_bytes : ctx->masks.whole_peak_bytes;
    bool fits = remat_plan(ctx->pool, &request, begin, &forms, &plan, &ctx->error);
    Form *chosen = first;
    for (int i = 0; i < f.n; i++)
        chosen = f.step[i] == plan.step ? f.form[i] : chosen;
    ctx->report = plan.report;
    ctx->report.loops = chosen->loops ? pool_strdup(ctx->pool, chosen->loops) : NULL;
    if (whole)
        ctx->masks.overhead_percent = mask_percent(&first->step.keep_all, &whole->step.keep_all);
    if (again && chosen->again)
        ctx->masks.tensors = again->masks.tensors;
    if (chosen->plain) {
        ctx->masks = ctx->plain->masks;
        ctx->masks.overhead_percent = mask_percent(&chosen->step.keep_all, &base->step.keep_all);
    }
    ctx->plain = NULL;
    if (!chosen->masks)
        ctx->masks = (MaskReport){0};
    return fits && use_plan(chosen, &plan);
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
