/* SPDX-License-Identifier: GPL-3.0-or-later */
/* verify: trains the user's model with and without recomputation and compares every bit. */
#include "frontend/driver/cli_build.h"
#include "frontend/driver/cli_session.h"
#include "passes/remat/solvers.h"

#include <stdio.h>
#include <string.h>

enum { DEFAULT_STEPS = 3 };

/* The same training run twice: everything kept, and under the budget. */
typedef struct Run {
    Program program;
    Session session;
    Machine machine;
} Run;

/* Everything is kept. */
static ExitCode build_whole(Cli *cli, const Ast *ast, Run *r)
{
    const Budget none = {.kind = BUDGET_NONE};
    ProgramOptions o = {.mode = FRONTEND_TRAIN,
                        .plan = {.budget = &none,
                                 .solver = remat_solver_find("none"),
                                 .cost = cost_models,
                                 .masks = MASKS_NEVER},
                        .checksums = true};
    return cli_build(cli, ast, &o, &r->program);
}

/* The user's budget, or the least there is; --budget "" is none, whatever the model's. */
static ExitCode build_planned(Cli *cli, const Ast *ast, Run *r)
{
    const Budget least = {.kind = BUDGET_MIN};
    if (cli->plan.budget && !*cli->plan.budget)
        return build_whole(cli, ast, r);
    ProgramOptions o = {.mode = FRONTEND_TRAIN, .checksums = true};
    o.plan.budget = cli->plan.budget ? NULL : &least;
    return cli_build(cli, ast, &o, &r->program);
}

/* On a device there is one arena for both: after every step the states are here anyway. */
static bool open_machines(Cli *cli, Run *keep, Run *plan)
{
    int64_t first = keep->program.plan->arena_bytes, second = plan->program.plan->arena_bytes;
    bool shared = cli_backend(cli) != &cpu_backend && second > first;
    return machine_open(cli, shared ? second : first, &keep->machine) &&
           machine_open_beside(cli, &keep->machine, second, &plan->machine);
}

static bool run_open(Run *r, uint64_t seed)
{
    /* Reading memory that the plan left dead would now show in every bit.  A device's is so before
     * every step. */
    if (!r->machine.cuda)
        arena_poison(&r->machine.arena, 0, r->machine.arena.bytes);
    return session_attach(&r->session, &r->machine) && session_initialize(&r->session, seed);
}

/* What compiles is forked, which has to be before the device is opened. */
static bool open_runs(Cli *cli, Run *keep, Run *plan, uint64_t seed)
{
    return session_compile(cli, &keep->program, &keep->session) &&
           session_compile(cli, &plan->program, &plan->session) && open_machines(cli, keep, plan) &&
           run_open(keep, seed) && run_open(plan, seed);
}

static void run_close(Run *r)
{
    session_close(&r->session);
    machine_close(&r->machine);
}

static void run_step(Run *r, const Dataset *data, int64_t update, uint64_t seed, bool *ok)
{
    const TrainSpec *spec = &r->program.graph->train;
    *ok = *ok && session_fill(&r->session, data, update, false) && session_take_arena(&r->session);
    double lr = lr_at(&spec->rule.lr, update, spec->steps ? spec->steps : 1000, 100);
    /* Warmup starts at zero in some schedules: weights must move for the comparison to mean
     * anything. */
    StepNumbers n = {.lr = lr > 0 ? lr : 1e-3,
                     .update = update,
                     .micro = update * train_micro_batches(spec),
                     .seed = seed};
    *ok = *ok && session_run(&r->session, n) && session_fetch_state(&r->session);
}

static const char *compare_bytes(Pool *pool, const char *name, const void *a, const void *b,
                                 int64_t bytes, int64_t update)
{
    if (memcmp(a, b, (size_t)bytes) == 0)
        return NULL;
    int64_t at = 0;
    while (((const char *)a)[at] == ((const char *)b)[at])
        at++;
    return pool_printf(pool, "step %lld: %s, byte %lld of %lld", (long long)update + 1, name,
                       (long long)at, (long long)bytes);
}

/* Loss, metrics, gradient norm and gradient checksums are outputs; the rest is persistent. */
static const char *first_difference(const Run *a, const Run *b, int64_t update)
{
    Pool *pool = a->session.cli->pool;
    const Graph *g = a->program.graph, *h = b->program.graph;
    const char *found = NULL;
    for (size_t i = 0; i < g->outputs.len && !found; i++) {
        const Output *o = &g->outputs.data[i];
        ValueId v = graph_output(h, o->name);
        bool is_checksum = strncmp(o->name, "checksum:", strlen("checksum:")) == 0;
        if (v == VALUE_NONE && is_checksum) /* of a gradient that has no storage there */
            continue;
        found =
            compare_bytes(pool, o->name, session_at(&a->session, o->value),
                          session_at(&b->session, v), type_bytes(value_type(g, o->value)), update);
    }
    for (int i = 0; i < a->session.n_tensors && !found; i++) {
        const char *name = graph_value(g, a->session.tensor_value[i])->name;
        ValueId v = graph_find(h, name);
        found = compare_bytes(pool, name, a->session.tensor[i].data, session_at(&b->session, v),
                              type_bytes(value_type(g, a->session.tensor_value[i])), update);
    }
    return found;
}

static void report(Cli *cli, const Run *r, int64_t steps, const char *difference)
{
    const MemPlan *plan = r->program.plan;
    const RematReport *of = &r->program.report;
    int64_t arena = plan->arena_bytes - plan->appended_bytes, kept = of->keep_all_peak_bytes;
    int64_t budget = of->budget_bytes;
    if (budget == INT64_MAX)
        budget = of->peak_bytes;
    if (cli->output.json) {
        json_t *o = json_pack(
            "{s:b,s:I,s:I,s:o,s:s,s:i}", "identical", difference == NULL, "steps",
            (json_int_t)steps, "budget_bytes", (json_int_t)budget, "first_difference",
            difference ? json_string(difference) : json_null(), "solver",
            r->program.report.solver->name, "recomputed_ops", r->program.report.recomputed_ops);
        cli_print_json(o);
        return;
    }
    if (difference)
        printf("DIFFERENT: %s\n", difference);
    else
        printf("identical: %lld step%s, %s instead of %s, %d operation%s recomputed by %s\n",
               (long long)steps, steps == 1 ? "" : "s", bytes_apart_text(cli->pool, arena, kept),
               bytes_apart_text(cli->pool, kept, arena), of->recomputed_ops,
               of->recomputed_ops == 1 ? "" : "s", of->solver->name);
}

/* Nothing was run: whether it would be identical is not known. */
static void report_infeasible(const RematReport *r)
{
    cli_print_json(json_pack("{s:n,s:i,s:I,s:n,s:s,s:I}", "identical", "steps", 0, "budget_bytes",
                             (json_int_t)r->budget_bytes, "first_difference", "status",
                             "infeasible", "min_feasible_bytes",
                             (json_int_t)r->min_feasible_bytes));
}

static bool compare_runs(Cli *cli, Run *keep, Run *plan, const char **difference)
{
    uint64_t seed = session_seed(cli, keep->program.graph);
    /* Real data when it is named on the command line, else random data of the model's shapes. */
    Dataset *data = session_open_data(cli, keep->program.graph, !cli->run.data, seed);
    bool ok = data && open_runs(cli, keep, plan, seed);
    for (int64_t i = 0; ok && i < cli->run.steps && !*difference; i++) {
        run_step(keep, data, i, seed, &ok);
        run_step(plan, data, i, seed, &ok);
        *difference = ok ? first_difference(keep, plan, i) : NULL;
    }
    dataset_close(data);
    return ok;
}

ExitCode verb_verify(Cli *cli)
{
    const Ast *ast = cli_parse_model(cli);
    if (!ast)
        return EXIT_USER;
    if (!cli->run.steps)
        cli->run.steps = DEFAULT_STEPS;
    Run keep = {0}, plan = {0};
    ExitCode code = build_whole(cli, ast, &keep);
    if (code == EXIT_OK)
        code = build_planned(cli, ast, &plan);
    if (code == EXIT_BUDGET && cli->output.json)
        report_infeasible(&plan.program.report);
    if (code != EXIT_OK)
        return code;
    const char *difference = NULL;
    bool ok = compare_runs(cli, &keep, &plan, &difference);
    if (ok)
        report(cli, &plan, cli->run.steps, difference);
    run_close(&plan); /* its device is the other's */
    run_close(&keep);
    if (!ok)
        return machine_failure(cli);
    return difference ? EXIT_INTERNAL : EXIT_OK;
}
