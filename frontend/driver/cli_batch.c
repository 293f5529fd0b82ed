/* SPDX-License-Identifier: GPL-3.0-or-later */
/* plan --max-batch: the largest batch whose step fits a budget. */
#include "frontend/driver/cli_build.h"
#include "frontend/driver/cli_plan.h"
#include "frontend/driver/cli_progress.h"
#include "ir/support/clock.h"
#include "passes/remat/solvers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t MAX_BATCH = 1 << 20;

/* What is left of a plan once its memory is given back. */
typedef struct BatchPlan {
    int64_t batch, arena_bytes, peak_bytes; /* batch = 0: none, and */
    int64_t least_bytes;                    /* the smallest plan found */
    double overhead_percent, step_cost;
    int recomputed_ops;
    const RematSolver *solver;
    const CostModel *cost;
} BatchPlan;

typedef struct BatchSearch {
    Cli *cli;
    const Ast *ast;
    Budget budget;
    PlanOverride plan; /* of the plans that are tried */
    ExitCode code;     /* of the last plan */
    Progress *progress;
    const char *what;        /* is looked for, */
    int64_t fits, too_large; /* between these; 0: not known */
    double started;
} BatchSearch;

static void show_batch(BatchSearch *s, int64_t batch)
{
    Pool *pool = s->cli->pool;
    const char *known = s->fits ? pool_printf(pool, "; %lld fits", (long long)s->fits) : "";
    if (s->too_large)
        known = pool_printf(pool, "%s%s %lld does not", known, s->fits ? "," : ";",
                            (long long)s->too_large);
    progress_show(s->cli, s->progress, "%s: trying %lld%s (%.0f s)", s->what, (long long)batch,
                  known, clock_seconds() - s->started);
}

/* A plan of the step for this batch, in memory that is given back: many are tried. */
static BatchPlan plan_batch(BatchSearch *s, int64_t batch)
{
    Cli cli = *s->cli;
    DriverState state = *cli.state;
    cli.pool = pool_new_child(s->cli->pool);
    cli.state = &state;
    state.solution_cache = NULL;
    state.costs = NULL;
    OptionDef n = {"N", pool_printf(cli.pool, "%lld", (long long)batch)};
    Program p = {0};
    ProgramOptions o = {.mode = FRONTEND_TRAIN,
                        .plan = s->plan,
                        .extra_defs = &n,
                        .n_extra_defs = 1,
                        .quiet_infeasible = true};
    show_batch(s, batch);
    s->code = cli_build(&cli, s->ast, &o, &p);
    s->cli->state->warned = state.warned;
    BatchPlan plan = {.batch = s->code == EXIT_OK ? batch : 0,
                      .arena_bytes = s->code == EXIT_OK ? p.plan->arena_bytes : 0,
                      .peak_bytes = p.report.peak_bytes,
                      .least_bytes = s->code == EXIT_BUDGET ? p.report.min_feasible_bytes : 0,
                      .overhead_percent = p.report.overhead_percent,
                      .step_cost = p.report.step_cost,
                      .recomputed_ops = p.report.recomputed_ops,
                      .solver = p.report.solver,
                      .cost = p.report.cost};
    pool_free(cli.pool);
    progress_clear(s->progress);
    return plan;
}

/* By doubling from a batch that may fit, then by bisection between one that does and one that does
 * not: a larger batch is taken to need more.  batch 0: not even `least` fits, or (s->code) an
 * error. */
static BatchPlan largest_batch(BatchSearch *s, int64_t least, int64_t start)
{
    s->fits = s->too_large = 0;
    BatchPlan best = plan_batch(s, start);
    s->too_large = best.batch ? 0 : start;
    if (!best.batch && start > least && s->code == EXIT_BUDGET)
        best = plan_batch(s, least);
    while (best.batch && !s->too_large && best.batch < MAX_BATCH) {
        int64_t next = 2 * best.batch < MAX_BATCH ? 2 * best.batch : MAX_BATCH;
        s->fits = best.batch;
        BatchPlan plan = plan_batch(s, next);
        if (plan.batch)
            best = plan;
        else
            s->too_large = next;
    }
    while (best.batch && s->too_large - best.batch > 1) {
        int64_t middle = best.batch + (s->too_large - best.batch) / 2;
        s->fits = best.batch;
        BatchPlan plan = plan_batch(s, middle);
        if (s->code == EXIT_USER)
            return plan;
        if (plan.batch)
            best = plan;
        else
            s->too_large = middle;
    }
    return best;
}

/* The model's own cost when it can be lowered with this batch; NULL when it cannot, with the
 * diagnostics left in cli->diag. */
static const char *cost_at(Cli *cli, const Ast *ast, int64_t batch)
{
    FrontendOptions o = cli_frontend_options(cli, FRONTEND_TRAIN);
    OptionDef *defs = POOL_ARRAY(cli->pool, (size_t)o.n_defs + 1, OptionDef);
    memcpy(defs, o.defs, (size_t)o.n_defs * sizeof *defs);
    defs[o.n_defs++] = (OptionDef){"N", pool_printf(cli->pool, "%lld", (long long)batch)};
    o.defs = defs;
    const Graph *g = frontend_lower(cli->pool, cli->diag, ast, &o);
    if (!g || diag_error_count(cli->diag))
        return NULL;
    return g->train.cost ? g->train.cost : "";
}

/* The smallest power of two that the model takes: batch norm after a global pool needs two. */
static int64_t least_batch(Cli *cli, const Ast *ast, const char **cost)
{
    for (int64_t batch = 1; batch <= MAX_BATCH; batch *= 2) {
        *cost = cost_at(cli, ast, batch);
        if (*cost)
            return batch;
        if (batch < MAX_BATCH / 2)
            diag_clear(cli->diag);
    }
    cli_diagnostics(cli);
    return 0;
}

static const OptionInfo *batch_option(Cli *cli, const Ast *ast)
{
    const OptionInfo *options;
    int n = frontend_options(cli->pool, ast, &options);
    for (int i = 0; i < n; i++)
        if (strcmp(options[i].name, "N") == 0 && strcmp(options[i].type, "int") == 0)
            return &options[i];
    return NULL;
}

static bool check_request(Cli *cli, const Ast *ast, Budget *budget)
{
    for (int i = 0; i < cli->source.n_defs; i++)
        if (strcmp(cli->source.defs[i].name, "N") == 0) {
            cli_error(cli, EXIT_USER, "E407", "leave one of them out",
                      "--max-batch and -D N exclude each other");
            return false;
        }
    if (!batch_option(cli, ast))
        cli_error(cli, EXIT_USER, "E413", "declare `option N = 32` and use it as the batch size",
                  "%s has no whole-number option N, which --max-batch would choose", cli->file);
    else if (!cli->plan.budget ||
             (budget_parse(cli->plan.budget, budget) && budget->kind != BUDGET_BYTES))
        cli_error(cli, EXIT_USER, "E407", "write --budget 8GiB",
                  "--max-batch needs a budget in bytes");
    else
        return true;
    return false;
}

static json_t *per_sample_json(const BatchPlan *p)
{
    return p->batch ? json_real(p->step_cost / (double)p->batch) : json_null();
}

/* Time per sample over that of the largest batch that fits without recomputation; NaN: none does.
 */
static double relative_time(const BatchPlan *p, const BatchPlan *kept)
{
    if (!kept->batch || kept->step_cost <= 0)
        return (double)NAN;
    return p->step_cost / (double)p->batch * (double)kept->batch / kept->step_cost;
}

static void print_batch_json(Budget budget, const BatchPlan *p, const BatchPlan *kept)
{
    json_t *o = json_pack(
        "{s:s,s:I,s:I,s:I,s:I,s:f,s:i,s:s}", "solver", p->solver->name, "budget_bytes",
        (json_int_t)budget_bytes(budget, 0, 0), "batch", (json_int_t)p->batch, "arena_bytes",
        (json_int_t)p->arena_bytes, "peak_bytes", (json_int_t)p->peak_bytes, "overhead_percent",
        p->overhead_percent, "recomputed_ops", p->recomputed_ops, "cost", p->cost->name);
    json_object_set_new(o, "largest_tried", json_boolean(p->batch == MAX_BATCH));
    json_object_set_new(o, p->cost->in_seconds ? "predicted_seconds_per_sample" : "cost_per_sample",
                        per_sample_json(p));
    json_object_set_new(o, "batch_without_recomputation",
                        kept->batch ? json_integer(kept->batch) : json_null());
    json_object_set_new(o, "relative_time_per_sample", cli_json_number(relative_time(p, kept)));
    cli_print_json(o);
}

static void print_batch_text(const Cli *cli, const BatchPlan *p, const BatchPlan *kept)
{
    double relative = relative_time(p, kept);
    printf("largest batch                    %lld%s\n"
           "arena                            %s of %s\n"
           "recomputation                    %+.1f%% of a step's time (%s, cost %s)\n",
           (long long)p->batch, p->batch == MAX_BATCH ? " (none larger is tried)" : "",
           bytes_text(cli->pool, p->arena_bytes), cli->plan.budget, p->overhead_percent,
           p->solver->name, p->cost->name);
    if (p->cost->in_seconds)
        printf("predicted time per sample        %.6g ms\n", 1e3 * p->step_cost / (double)p->batch);
    if (kept->batch)
        printf("largest without recomputation    %lld\n"
               "time per sample against that     %.3f\n",
               (long long)kept->batch, relative);
    else
        puts("without recomputation            no batch fits");
}

/* Kernels of every batch that is tried would have to be measured: those of the answer are enough.
 */
static const CostModel *search_cost(const Cli *cli, const char *own)
{
    const PlanSettings file = {.cost = own}, all = plan_settings_merge(&cli->plan, &file);
    const CostModel *m = cost_model_find(all.cost);
    return m && !m->cost ? cost_models : NULL;
}

static BatchPlan with_costs(BatchSearch *s, const BatchPlan *found)
{
    if (!s->plan.cost || !found->batch)
        return *found;
    BatchSearch last = *s;
    last.plan.cost = NULL;
    last.what = "batch with measured costs";
    last.fits = last.too_large = 0;
    BatchPlan plan = plan_batch(&last, found->batch);
    s->code = last.code;
    if (last.code == EXIT_BUDGET)
        cli_error(s->cli, EXIT_BUDGET, "E401",
                  "leave --cost out, or plan smaller batches one by one",
                  "a batch of %lld fits a budget of %s by the costs of the search, cost %s, but by "
                  "measured ones the smallest plan found takes %s",
                  (long long)found->batch, s->cli->plan.budget, s->plan.cost->name,
                  bytes_text(s->cli->pool, plan.least_bytes));
    return plan;
}

static ExitCode no_batch_fits(Cli *cli, int64_t batch, int64_t least_bytes)
{
    const char *help = pool_printf(
        cli->pool, "give it %lld bytes or more, or make the model smaller", (long long)least_bytes);
    return cli_error(cli, EXIT_BUDGET, "E401", help,
                     "no batch was found that fits a budget of %s: the smallest plan found for a "
                     "batch of %lld takes %s",
                     cli->plan.budget, (long long)batch, bytes_text(cli->pool, least_bytes));
}

ExitCode cli_plan_max_batch(Cli *cli, const Ast *ast)
{
    const char *own;
    Budget budget;
    if (!check_request(cli, ast, &budget))
        return EXIT_USER;
    int64_t least = least_batch(cli, ast, &own);
    if (!least)
        return EXIT_USER;
    Progress progress = progress_begin(0);
    BatchSearch s = {.cli = cli,
                     .ast = ast,
                     .budget = budget,
                     .plan = {.budget = &budget,
                              .solver = remat_solver_find("none"),
                              .cost = search_cost(cli, own)},
                     .progress = &progress,
                     .what = "batch without recomputation",
                     .started = clock_seconds()};
    BatchPlan kept = largest_batch(&s, least, least);
    if (s.code == EXIT_USER)
        return EXIT_USER;
    kept = with_costs(&s, &kept);
    s.plan.solver = NULL;
    s.what = "batch with recomputation";
    BatchPlan best = largest_batch(&s, least, kept.batch ? kept.batch : least);
    if (!best.batch && s.code == EXIT_BUDGET)
        return no_batch_fits(cli, least, best.least_bytes);
    if (!best.batch)
        return s.code;
    best = with_costs(&s, &best);
    if (!best.batch)
        return s.code;
    if (cli->output.json)
        print_batch_json(s.budget, &best, &kept);
    else
        print_batch_text(cli, &best, &kept);
    return EXIT_OK;
}
