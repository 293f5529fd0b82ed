/* Recomputations that make the step fit its budget (docs/remat.md). */
#include "ir/support/bug.h"
#include "passes/memplan/too_large.h"
#include "passes/pass.h"
#include "passes/remat/budget.h"
#include "passes/remat/reorder.h"
#include "passes/remat/solvers.h"

#include <string.h>
#include <time.h>

/* How often the target is lowered because the arena missed the peak. */
enum { MAX_TIGHTENINGS = 8 };

typedef struct Answer {
    const char *solver;
    RematSchedule schedule;
    RematFigures figures;
    int64_t arena_bytes; /* as planned */
} Answer;

typedef struct Solve {
    PassContext *ctx;
    Pool *scratch;
    RematProblem *p;
    RematMapping mapping;
    const RematSolver *only; /* NULL: the best of all */
    RematObjective objective;
    int64_t budget_bytes;
} Solve;

static bool pass_error(PassContext *ctx, const char *code, const char *message, const char *help)
{
    ctx->error_code = code;
    ctx->error = message;
    ctx->error_help = help;
    return false;
}

/* Settings: the context's, else the file's */

static const char *setting(const char *own, const char *file)
{
    return own ? own : file ? file : "";
}

static bool read_solver(PassContext *ctx, Solve *s)
{
    const char *name = setting(ctx->solver, ctx->graph->train.solver), *names[32];
    if (!*name || strcmp(name, "best") == 0)
        return true;
    s->only = remat_solver_find(name);
    if (s->only)
        return true;
    size_t n = 0;
    names[n++] = "best";
    for (const RematSolver *r = remat_solvers; r->name; r++)
        names[n++] = r->name;
    const char *nearest = nearest_word(name, names, n);
    return pass_error(ctx, "E404", pool_printf(ctx->pool, "no solver is called '%s'", name),
                      nearest ? pool_printf(ctx->pool, "did you mean `%s`?", nearest)
                              : "solvers: best, none, chen, kusumoto_approx");
}

static bool read_objective(PassContext *ctx, Solve *s)
{
    const char *name = setting(ctx->objective, ctx->graph->train.objective);
    if (*name && strcmp(name, "time") != 0 && strcmp(name, "memory") != 0)
        return pass_error(ctx, "E405", pool_printf(ctx->pool, "no objective is called '%s'", name),
                          "objectives: time, memory");
    s->objective = strcmp(name, "memory") == 0 ? REMAT_MIN_MEMORY : REMAT_MIN_TIME;
    return true;
}

static bool read_budget(PassContext *ctx, Budget *budget)
{
    const char *text = setting(ctx->budget, ctx->graph->train.budget_text);
    if (budget_parse(text, budget))
        return true;
    return pass_error(ctx, "E403", pool_printf(ctx->pool, "'%s' is not a budget", text),
                      "write bytes (512MiB, 1.5GB), a part (40%) or min");
}

/* Solving */

/* The same executions in the order with the smallest peak found, when that is below the present
 * one. */
static void improve_order(Solve *s, Answer *a)
{
    Pool *pool = pool_new_child(s->scratch);
    RematProblem *runs = remat_expand(pool, s->p, &a->schedule);
    RematSchedule order = reorder_nodes(pool, runs, 0);
    for (int i = 0; i < order.len; i++)
        order.node[i] = a->schedule.node[order.node[i]];
    RematFigures f = remat_check(s->scratch, s->p, &order);
    if (f.ok && f.peak_bytes < a->figures.peak_bytes) {
        a->figures = f;
        memcpy(a->schedule.node, order.node, (size_t)order.len * sizeof *order.node);
    }
    pool_free(pool);
}

static bool is_better(const Solve *s, const Answer *a, const Answer *b, int64_t budget)
{
    bool a_fits = a->figures.peak_bytes <= budget, b_fits = b->figures.peak_bytes <= budget;
    if (a_fits != b_fits)
        return a_fits;
    if (a_fits && s->objective == REMAT_MIN_TIME && a->figures.time != b->figures.time)
        return a->figures.time < b->figures.time;
    if (a->figures.peak_bytes != b->figures.peak_bytes)
        return a->figures.peak_bytes < b->figures.peak_bytes;
    return a->figures.time < b->figures.time;
}

static Answer run_solver(Solve *s, const RematSolver *solver, int64_t budget)
{
    Answer a = {.solver = solver->name};
    RematOptions o = {budget, s->objective, 0};
    solver->solve(s->p, &o, s->scratch, &a.schedule);
    a.figures = remat_check(s->scratch, s->p, &a.schedule);
    if (!a.figures.ok)
        BUG("solver %s made a wrong schedule: %s", solver->name, a.figures.fault);
    if (a.figures.peak_bytes > budget || s->objective == REMAT_MIN_MEMORY)
        improve_order(s, &a);
    return a;
}

static Answer solve(Solve *s, int64_t budget)
{
    Answer best = {0};
    for (const RematSolver *solver = remat_solvers; solver->name; solver++) {
        if (s->only && s->only != solver)
            continue;
        Answer a = run_solver(s, solver, budget);
        if (!best.solver || is_better(s, &a, &best, budget))
            best = a;
        if (s->objective == REMAT_MIN_TIME && best.figures.recomputed == 0 &&
            best.figures.peak_bytes <= budget)
            break; /* nothing is faster than no recomputation */
    }
    return best;
}

/* What the plan of the step with these recomputations takes. */
static int64_t planned_arena(const Solve *s, const RematSchedule *schedule)
{
    Pool *pool = pool_new_child(s->scratch);
    Graph *copy = graph_copy(pool, s->ctx->graph);
    remat_apply(copy, s->p, &s->mapping, schedule, "");
    int64_t arena = memplan_graph(pool, copy)->arena_bytes;
    pool_free(pool);
    return arena;
}

/* The budget is one of real bytes: where the plan of an answer exceeds it, the next answer must
 * have a smaller peak. */
static Answer solve_arena(Solve *s, int64_t budget)
{
    Answer a = {0};
    int64_t target = budget;
    for (int k = 0; k <= MAX_TIGHTENINGS; k++) {
        a = solve(s, target);
        a.arena_bytes = planned_arena(s, &a.schedule);
        if (a.arena_bytes <= budget || a.figures.peak_bytes > target)
            break;
        int64_t lower = budget - (a.arena_bytes - a.figures.peak_bytes);
        target = lower < a.figures.peak_bytes ? lower : a.figures.peak_bytes - MEMPLAN_ALIGN;
    }
    return a;
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

static bool check_hints(Solve *s, const Answer *a)
{
    const RematProblem *p = s->p;
    int *runs = POOL_ARRAY(s->scratch, (size_t)p->n_nodes + 1, int);
    bool *crosses = POOL_ARRAY(s->scratch, (size_t)p->n_nodes + 1, bool);
    for (int i = 0; i < a->schedule.len; i++)
        runs[a->schedule.node[i]]++;
    find_crossing(p, &a->schedule, crosses);
    for (int n = 0; n < p->n_nodes; n++) {
        const RematNode *node = &p->node[n];
        const char *why = node->hint == REMAT_RECOMPUTE ? why_not_recomputed(p, node) : NULL;
        if (node->hint == REMAT_KEEP && runs[n] > 1)
            why = "solver recomputes it";
        if (node->hint == REMAT_RECOMPUTE && !why && crosses[n])
            why = "its value is needed across the loss";
        if (why)
            return pass_error(s->ctx, "E402",
                              pool_printf(s->ctx->pool, "@%s of %s cannot be obeyed: %s",
                                          node->hint == REMAT_KEEP ? "keep" : "recompute",
                                          node->name, why),
                              "remove the annotation");
    }
    return true;
}

/* Reporting */

static void fill_report(Solve *s, const Answer *a, const RematFigures *keep_all)
{
    RematReport *r = &s->ctx->report;
    r->solver = a->solver;
    r->peak_bytes = a->figures.peak_bytes;
    r->persistent_bytes = s->p->persistent_bytes;
    r->keep_all_peak_bytes = keep_all->peak_bytes;
    r->budget_bytes = s->budget_bytes;
    r->recomputed_ops = a->figures.recomputed;
    r->overhead_percent =
        keep_all->time > 0 ? 100 * (a->figures.time - keep_all->time) / keep_all->time : 0;
    int node;
    r->lower_bound_bytes = remat_peak_lower_bound(s->p, s->scratch, &node);
    r->bound_node = node < 0 ? "" : pool_strdup(s->ctx->pool, s->p->node[node].name);
    r->status = a->arena_bytes > s->budget_bytes ? REMAT_INFEASIBLE
                : a->figures.recomputed == 0     ? REMAT_OPTIMAL
                                                 : REMAT_FEASIBLE;
}

static bool report_infeasible(Solve *s, const Answer *smallest)
{
    PassContext *ctx = s->ctx;
    ctx->report.min_feasible_bytes = smallest->arena_bytes;
    const char *minimum = bytes_text(ctx->pool, smallest->arena_bytes);
    const char *message =
        pool_printf(ctx->pool,
                    "budget %s infeasible: minimum %s; the bound is forced by %s (its inputs, "
                    "output and workspace)",
                    bytes_text(ctx->pool, s->budget_bytes), minimum, ctx->report.bound_node);
    return pass_error(ctx, "E401", message,
                      pool_printf(ctx->pool, "give it %s (%lld bytes) or more, or a smaller batch",
                                  minimum, (long long)smallest->arena_bytes));
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool meet_budget(Solve *s, Budget budget)
{
    RematSchedule base = remat_base_schedule(s->scratch, s->p);
    RematFigures keep_all = remat_check(s->scratch, s->p, &base);
    s->budget_bytes = budget_bytes(budget, s->p->persistent_bytes, keep_all.peak_bytes);
    Answer a;
    if (budget.kind == BUDGET_NONE) {
        a = run_solver(s, remat_solver_find("none"), INT64_MAX);
    } else {
        if (budget.kind == BUDGET_MIN) {
            a = solve_arena(s, 0);
            s->budget_bytes = s->ctx->report.min_feasible_bytes = a.arena_bytes;
        }
        a = solve_arena(s, s->budget_bytes);
    }
    fill_report(s, &a, &keep_all);
    if (s->ctx->report.status == REMAT_INFEASIBLE)
        return report_infeasible(s, &a);
    if (!check_hints(s, &a))
        return false;
    if (a.figures.recomputed > 0 || budget.kind != BUDGET_NONE)
        remat_apply(s->ctx->graph, s->p, &s->mapping, &a.schedule,
                    strcmp(a.solver, "none") == 0 ? "hint" : a.solver);
    return true;
}

bool pass_remat(PassContext *ctx)
{
    if (!memplan_is_countable(ctx->graph))
        return memplan_too_large(ctx);
    Solve s = {.ctx = ctx, .scratch = pool_new_child(ctx->pool)};
    double begin = seconds_now();
    Budget budget;
    ctx->report = (RematReport){.solver = "none", .budget_bytes = INT64_MAX};
    bool ok = read_solver(ctx, &s) && read_objective(ctx, &s) && read_budget(ctx, &budget);
    if (ok) {
        s.p = remat_problem_from_graph(s.scratch, ctx->graph, &s.mapping);
        ok = meet_budget(&s, budget);
    }
    ctx->report.solve_seconds = seconds_now() - begin;
    pool_free(s.scratch);
    return ok;
}
