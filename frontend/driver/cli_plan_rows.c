/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plans of a model or a graph, one or many, as rows; and what a program gets of a row. */
#include "frontend/driver/cli_build.h"
#include "frontend/driver/cli_plan.h"
#include "passes/remat/solvers.h"

#include <math.h>

ExitCode cli_plan_once(Cli *cli, const PlanSource *of, const PlanOverride *own, bool quiet,
                       PlanRow *row, Program *program)
{
    Program p = {0};
    if (of->graph)
        return cli_plan_graph(cli, of->graph, own, quiet, row);
    ProgramOptions o = {.mode = FRONTEND_TRAIN, .plan = *own, .quiet_infeasible = quiet};
    ExitCode code = cli_build(cli, of->ast, &o, &p);
    *row = (PlanRow){.solver = p.report.solver,
                     .report = p.report,
                     .masks = p.masks,
                     .chunks = p.chunks,
                     .feasible = code == EXIT_OK};
    if (p.plan) {
        row->arena_bytes = p.plan->arena_bytes;
        row->arena_lower_bound_bytes = p.plan->lower_bound_bytes;
    }
    if (program)
        *program = p;
    return code;
}

NodeCosts cli_plan_costs(const Cli *cli, const RematReport *r)
{
    const MeasuredCosts *measured = cli->state->costs;
    return (NodeCosts){r->cost, measured ? measured->cost : NULL,
                       measured ? measured->table : NULL};
}

/* --- a row for programs --- */

const char *cli_row_status(const RematReport *r)
{
    if (r->status == REMAT_INFEASIBLE && r->solver_most_nodes && !r->infeasible_proven)
        return "limit";
    switch (r->status) {
    case REMAT_OPTIMAL:
        return "optimal";
    case REMAT_FEASIBLE:
        return "feasible";
    case REMAT_LIMIT:
        return "limit";
    case REMAT_INFEASIBLE:
        return "infeasible";
    }
    return "unknown";
}

/* The operation and the tensors that no schedule gets below, largest first. */
static json_t *forced_json(const RematReport *r)
{
    json_t *tensors = json_array();
    for (int k = 0; k < r->n_bound_tensors; k++)
        json_array_append_new(tensors, json_pack("{s:s,s:I}", "name", r->bound_tensors[k].name,
                                                 "bytes", (json_int_t)r->bound_tensors[k].bytes));
    return json_pack("{s:s,s:I,s:o}", "operation", r->bound_node ? r->bound_node : "",
                     "workspace_bytes", (json_int_t)r->bound_workspace_bytes, "tensors", tensors);
}

/* null: no schedule is within the budget (peak_lower_bound_bytes is above it). */
static void add_bounds(json_t *o, const RematReport *r)
{
    json_object_set_new(o, "overhead_lower_bound_percent",
                        isfinite(r->overhead_lower_bound_percent)
                            ? json_real(r->overhead_lower_bound_percent)
                            : json_null());
    if (r->recomputed_ops == 0)
        json_object_set_new(o, "order_lower_bound_bytes", json_integer(r->order_bound_bytes));
    if (r->status == REMAT_INFEASIBLE)
        json_object_set_new(o, "forced_by", forced_json(r));
}

const char *cli_row_solver(const PlanRow *row)
{
    return row->solver ? row->solver->name : "none";
}

static void add_infeasible(json_t *o, const RematReport *r)
{
    json_object_set_new(o, "infeasible_proven", json_boolean(r->infeasible_proven));
    json_object_set_new(o, "min_feasible_bytes", json_integer(r->min_feasible_bytes));
}

json_t *cli_row_json(const Cli *cli, const PlanRow *row)
{
    const RematReport *r = &row->report;
    json_t *o = json_pack("{s:s,s:s}", "solver", cli_row_solver(row), "status", cli_row_status(r));
    json_object_set_new(o, "budget_bytes",
                        r->budget_bytes == INT64_MAX ? json_null() : json_integer(r->budget_bytes));
    if (r->status == REMAT_INFEASIBLE)
        add_infeasible(o, r);
    json_object_set_new(o, "persistent_bytes", json_integer(r->persistent_bytes));
    json_object_set_new(o, "keep_all_peak_bytes", json_integer(r->keep_all_peak_bytes));
    json_object_set_new(o, "peak_bytes", json_integer(r->peak_bytes));
    json_object_set_new(o, "peak_lower_bound_bytes", json_integer(r->lower_bound_bytes));
    json_object_set_new(o, "arena_bytes",
                        row->feasible ? json_integer(row->arena_bytes) : json_null());
    json_object_set_new(o, "arena_lower_bound_bytes",
                        row->feasible ? json_integer(row->arena_lower_bound_bytes) : json_null());
    json_object_set_new(o, "overhead_percent", json_real(r->overhead_percent));
    if (!row->external)
        json_object_set_new(o, "forward_percent", json_real(r->forward_percent));
    add_bounds(o, r);
    json_object_set_new(o, "recomputed_ops", json_integer(r->recomputed_ops));
    if (r->loops)
        json_object_set_new(o, "loops", json_string(r->loops));
    if (!row->external)
        json_object_set_new(o, "masked_tensors", json_integer(row->masks.tensors));
    if (row->chunks)
        json_object_set_new(o, "loss_chunks", json_integer(row->chunks));
    if (row->masks.tensors)
        json_object_set_new(o, "mask_overhead_percent", json_real(row->masks.overhead_percent));
    if (r->treewidth > 0)
        json_object_set_new(o, "treewidth", json_integer(r->treewidth));
    if (r->cost)
        json_object_set_new(o, "cost", json_string(r->cost->name));
    if (r->cost && r->cost->in_seconds)
        json_object_set_new(o, "predicted_seconds_per_step", json_real(r->step_cost));
    json_object_set_new(o, "solve_seconds", json_real(r->solve_seconds));
    if (row->external)
        cli_graph_json(cli, row, o);
    return o;
}

/* --- many plans --- */

ExitCode cli_plan_solvers(Cli *cli, const PlanSource *of, Progress *progress, PlanRowSink *sink,
                          void *user)
{
    ExitCode best = EXIT_BUDGET;
    cli->plan.solver = NULL; /* each row has its own */
    for (const RematSolver *s = remat_solvers; s->name; s++) {
        PlanRow row;
        if (s->needs_milp) /* minutes on graphs that others solve in milliseconds */
            continue;
        progress_show(cli, progress, "%s ...", s->name);
        ExitCode code = cli_plan_once(cli, of, &(PlanOverride){.solver = s}, true, &row, NULL);
        if (code == EXIT_USER)
            return code;
        best = code < best ? code : best;
        row.solver = s;
        if (!sink(user, &row))
            return EXIT_OK;
    }
    return best;
}

/* Budget i of n from low to high. */
static int64_t sweep_budget(int64_t low, int64_t high, int n, int i)
{
    return low + (high - low) / (n - 1) * i + (high - low) % (n - 1) * i / (n - 1);
}

ExitCode cli_plan_budgets(Cli *cli, const PlanSource *of, int n, Progress *progress,
                          PlanRowSink *sink, void *user)
{
    const Budget least = {.kind = BUDGET_MIN};
    PlanRow best; /* of the budgets so far */
    ExitCode code = cli_plan_once(cli, of, &(PlanOverride){.budget = &least}, false, &best, NULL);
    if (code != EXIT_OK)
        return code;
    int64_t low = best.report.budget_bytes, high = best.report.keep_all_peak_bytes;
    for (int i = 0; i < n; i++) {
        PlanRow row = best;
        int64_t budget = sweep_budget(low, high, n, i);
        if (i > 0) {
            progress_show(cli, progress, "budget %d of %d ...", i + 1, n);
            const Budget bytes = {.kind = BUDGET_BYTES, .amount = (double)budget};
            code = cli_plan_once(cli, of, &(PlanOverride){.budget = &bytes}, true, &row, NULL);
            if (code == EXIT_USER)
                return code;
        }
        double proven = row.report.overhead_lower_bound_percent; /* for this budget only */
        if (row.feasible && row.report.overhead_percent <= best.report.overhead_percent)
            best = row;
        row = best;
        row.report.budget_bytes = budget;
        row.report.overhead_lower_bound_percent = proven;
        if (!sink(user, &row))
            return EXIT_OK;
    }
    return EXIT_OK;
}
