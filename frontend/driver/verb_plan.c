/* SPDX-License-Identifier: GPL-3.0-or-later */
/* plan: what a budget costs, by every solver, over a sweep of budgets. */
#include "codegen/build/compile.h"
#include "frontend/driver/cli_build.h"
#include "frontend/driver/cli_file.h"
#include "frontend/driver/cli_plan.h"
#include "frontend/driver/cli_progress.h"
#include "frontend/driver/cli_signals.h"
#include "passes/memplan/buffer_csv.h"
#include "passes/remat/solvers.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A table's rows are its progress, unless they take long. */
static const double SECONDS_TO_FIRST_LINE = 10;

static const char *status_name(const RematReport *r)
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

/* --arena-csv: what lies in the arena, when and where. */
static ExitCode write_buffers(Cli *cli, const Program *p)
{
    StrBuf text = strbuf_new(cli->pool);
    buffer_csv_write_plan(p->graph, p->plan, &text);
    return cli_write_file(cli, cli->ask.arena_csv, text.text);
}

static ExitCode plan_once(Cli *cli, const PlanSource *of, const PlanOverride *own, bool quiet,
                          PlanRow *row)
{
    if (of->graph) {
        ExitCode code = cli_plan_graph(cli, of->graph, own, quiet, row);
        return code == EXIT_OK && cli->ask.svg ? cli_write_picture(cli, of, NULL, row) : code;
    }
    Program p = {0};
    ProgramOptions o = {.mode = FRONTEND_TRAIN, .plan = *own, .quiet_infeasible = quiet};
    ExitCode code = cli_build(cli, of->ast, &o, &p);
    *row = (PlanRow){.solver = p.report.solver,
                     .report = p.report,
                     .masks = p.masks,
                     .feasible = code == EXIT_OK};
    if (p.plan) {
        row->arena_bytes = p.plan->arena_bytes;
        row->arena_lower_bound_bytes = p.plan->lower_bound_bytes;
    }
    if (cli->ask.arena_csv && code == EXIT_OK)
        code = write_buffers(cli, &p);
    if (cli->ask.svg && code == EXIT_OK)
        code = cli_write_picture(cli, of, &p, row);
    return code;
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

static const char *solver_name(const PlanRow *row)
{
    return row->solver ? row->solver->name : "none";
}

static void add_infeasible(json_t *o, const RematReport *r)
{
    json_object_set_new(o, "infeasible_proven", json_boolean(r->infeasible_proven));
    json_object_set_new(o, "min_feasible_bytes", json_integer(r->min_feasible_bytes));
}

static json_t *row_json(const Cli *cli, const PlanRow *row)
{
    const RematReport *r = &row->report;
    json_t *o = json_pack("{s:s,s:s}", "solver", solver_name(row), "status", status_name(r));
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
    if (!row->external)
        json_object_set_new(o, "masked_tensors", json_integer(row->masks.tensors));
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

static void print_heading(void)
{
    printf("%-20s %-10s %10s %10s %10s %10s %9s %9s %8s %8s\n", "solver", "status", "budget",
           "peak", "arena", "bound", "overhead", "at least", "reruns", "seconds");
}

static void print_row(Pool *pool, const PlanRow *row)
{
    const RematReport *r = &row->report;
    const char *least = isfinite(r->overhead_lower_bound_percent)
                            ? pool_printf(pool, "%.1f%%", r->overhead_lower_bound_percent)
                            : "-";
    printf("%-20s %-10s %10s %10s %10s %10s %8.1f%% %9s %8d %8.2f\n", solver_name(row),
           status_name(r), r->budget_bytes == INT64_MAX ? "-" : bytes_text(pool, r->budget_bytes),
           bytes_text(pool, r->peak_bytes),
           row->feasible ? bytes_text(pool, row->arena_bytes) : "-",
           row->feasible ? bytes_text(pool, row->arena_lower_bound_bytes) : "-",
           r->overhead_percent, least, r->recomputed_ops, r->solve_seconds);
}

/* Times of graphs are the user's: as many digits as they have. */
static void print_json(const Cli *cli, json_t *object)
{
    if (cli->source.graph)
        cli_print_exact_json(object);
    else
        cli_print_json(object);
}

/* The next row of a table or of a list: the table's rows are seen, also through a pipe, as they
 * come. */
static void add_row(const Cli *cli, json_t *list, Progress *progress, const PlanRow *row)
{
    progress_clear(progress);
    if (cli->output.json) {
        json_array_append_new(list, row_json(cli, row));
        return;
    }
    print_row(cli->pool, row);
    fflush(stdout);
}

/* Standard output cannot be written: further rows, which take minutes, are not made.  main says so,
 * or ends by SIGPIPE as other programs do. */
static bool output_is_lost(Cli *cli)
{
    if (signals_pipe_ends() && signals_reader_left(STDOUT_FILENO))
        cli->state->ended_by = SIGPIPE;
    return cli->state->ended_by || ferror(stdout);
}

static void end_rows(const Cli *cli, json_t *list)
{
    if (cli->output.json)
        print_json(cli, list);
    else
        json_decref(list);
}

static void print_facts(Pool *pool, const PlanRow *row)
{
    const RematReport *r = &row->report;
    printf("persistent (weights, optimizer, statistics)  %s\n"
           "whole step without recomputation             %s\n"
           "no schedule needs less than                  %s (%s)\n",
           bytes_text(pool, r->persistent_bytes), bytes_text(pool, r->keep_all_peak_bytes),
           bytes_text(pool, r->lower_bound_bytes), r->bound_node ? r->bound_node : "-");
    if (r->cost && r->cost->in_seconds)
        printf("predicted time of a step                     %.3f ms\n", 1e3 * r->step_cost);
    if (r->recomputed_ops == 0)
        printf("no order without recomputation needs less    %s\n",
               bytes_text(pool, r->order_bound_bytes));
    if (row->masks.tensors)
        printf(
            "saved as bits or indices                     %d tensor%s (%.2f%% of a step's time)\n",
            row->masks.tensors, row->masks.tensors > 1 ? "s" : "", row->masks.overhead_percent);
    putchar('\n');
}

static ExitCode plan_one(Cli *cli, const PlanSource *of)
{
    PlanRow row;
    ExitCode code = plan_once(cli, of, &(PlanOverride){0}, false, &row);
    if (code == EXIT_USER)
        return code;
    if (cli->output.json)
        print_json(cli, row_json(cli, &row));
    if (cli->output.json || cli_is_standard_output(cli->ask.arena_csv) ||
        cli_is_standard_output(cli->ask.svg))
        return code; /* what is written there is alone there */
    print_facts(cli->pool, &row);
    print_heading();
    print_row(cli->pool, &row);
    if (cli->ask.schedule)
        cli_print_schedule(&row);
    if (row.report.treewidth > 0)
        printf("\ntree decomposition of width %d\n", row.report.treewidth);
    if (row.feasible && row.arena_bytes < row.report.peak_bytes)
        puts("\nPieces of concatenations and slices lie inside of one another in the arena; the "
             "peak counts copies.");
    if (row.feasible && row.arena_bytes == row.arena_lower_bound_bytes)
        puts("\nThe arena equals its lower bound: no placement of this schedule is smaller.");
    return code;
}

static ExitCode plan_compare(Cli *cli, const PlanSource *of)
{
    json_t *list = json_array();
    Progress progress = progress_begin(SECONDS_TO_FIRST_LINE);
    if (!cli->output.json)
        print_heading();
    ExitCode best = EXIT_BUDGET; /* the budget can be met when one solver meets it */
    cli->plan.solver = NULL;     /* each row has its own */
    for (const RematSolver *s = remat_solvers; s->name; s++) {
        PlanRow row;
        if (s->needs_milp) /* minutes on graphs that others solve in milliseconds */
            continue;
        progress_show(cli, &progress, "%s ...", s->name);
        ExitCode code = plan_once(cli, of, &(PlanOverride){.solver = s}, true, &row);
        if (code == EXIT_USER)
            return code;
        best = code < best ? code : best;
        row.solver = s;
        add_row(cli, list, &progress, &row);
        if (output_is_lost(cli)) {
            json_decref(list);
            return EXIT_OK;
        }
    }
    end_rows(cli, list);
    PlanRow row;
    if (best == EXIT_BUDGET) /* once more by all together, for the message */
        plan_once(cli, of, &(PlanOverride){0}, false, &row);
    return best;
}

/* Budget i of n from low to high. */
static int64_t sweep_budget(int64_t low, int64_t high, int n, int i)
{
    return low + (high - low) / (n - 1) * i + (high - low) % (n - 1) * i / (n - 1);
}

/* Budgets from the minimum to everything kept; a plan that serves a smaller budget better is used
 * for the larger one too, so that time never falls as memory shrinks. */
static ExitCode plan_sweep(Cli *cli, const PlanSource *of)
{
    const Budget least = {.kind = BUDGET_MIN};
    PlanRow best; /* of the budgets so far */
    ExitCode code = plan_once(cli, of, &(PlanOverride){.budget = &least}, false, &best);
    if (code != EXIT_OK)
        return code;
    int n = (int)cli->ask.sweep;
    int64_t low = best.report.budget_bytes, high = best.report.keep_all_peak_bytes;
    json_t *list = json_array();
    Progress progress = progress_begin(SECONDS_TO_FIRST_LINE);
    if (!cli->output.json)
        print_heading();
    for (int i = 0; i < n; i++) {
        PlanRow row = best;
        int64_t budget = sweep_budget(low, high, n, i);
        if (i > 0) {
            progress_show(cli, &progress, "budget %d of %d ...", i + 1, n);
            const Budget bytes = {.kind = BUDGET_BYTES, .amount = (double)budget};
            code = plan_once(cli, of, &(PlanOverride){.budget = &bytes}, true, &row);
            if (code == EXIT_USER)
                return code;
        }
        double proven = row.report.overhead_lower_bound_percent; /* for this budget only */
        if (row.feasible && row.report.overhead_percent <= best.report.overhead_percent)
            best = row;
        row = best;
        row.report.budget_bytes = budget;
        row.report.overhead_lower_bound_percent = proven;
        add_row(cli, list, &progress, &row);
        if (output_is_lost(cli)) {
            json_decref(list);
            return EXIT_OK;
        }
    }
    end_rows(cli, list);
    return EXIT_OK;
}

/* A sweep is a list in memory and a search or a look-up each. */
enum { MOST_BUDGETS = 10000 };

static bool has_leaf_bags(const char *name)
{
    const RematSolver *solver = name ? remat_solver_find(name) : remat_solvers;
    return solver && solver->has_leaf_bags;
}

/* Options that exclude each other. */
static bool check_options(Cli *cli)
{
    const char *what = NULL;
    if (cli->ask.sweep && (cli->ask.compare || cli->plan.budget))
        what = cli->ask.compare ? "--sweep and --compare" : "--sweep and --budget";
    else if (cli->source.graph &&
             (cli->file != cli->source.graph || cli->source.n_defs || cli->source.model ||
              cli->plan.no_masks || cli->plan.no_attention))
        what = cli->file != cli->source.graph ? "a model and --graph"
               : cli->source.n_defs           ? "--graph and -D"
               : cli->source.model            ? "--graph and --model"
               : cli->plan.no_masks           ? "--graph and --no-masks"
                                              : "--graph and --no-attention";
    else if (cli->ask.max_batch &&
             (cli->source.graph || cli->ask.compare || cli->ask.sweep || cli->source.count))
        what = "--max-batch and --graph, --compare, --sweep or --count";
    else if (cli->source.count &&
             (cli->source.graph || cli->plan.budget || cli->ask.compare || cli->ask.sweep))
        what = "--count and --graph, --budget, --compare or --sweep";
    else if (cli->ask.arena_csv && (cli->source.graph || cli->ask.compare || cli->ask.sweep ||
                                    cli->source.count || cli->ask.max_batch))
        what = "--arena-csv and --graph, --compare, --sweep, --count or --max-batch";
    else if (cli->ask.svg &&
             (cli->ask.compare || cli->ask.sweep || cli->source.count || cli->ask.max_batch))
        what = "--svg and --compare, --sweep, --count or --max-batch";
    else if (cli_is_standard_output(cli->ask.svg) && cli_is_standard_output(cli->ask.arena_csv))
        what = "--svg - and --arena-csv -";
    if (what)
        cli_error(cli, EXIT_USER, "E407", "leave one of them out", "%s exclude each other", what);
    else if (cli->ask.sweep > MOST_BUDGETS)
        cli_error(cli, EXIT_USER, "E407", NULL, "--sweep: at most %d budgets", MOST_BUDGETS);
    else if (cli->plan.twremat_leaf_bags && !has_leaf_bags(cli->plan.solver))
        cli_error(cli, EXIT_USER, "E407", "add --solver twremat", "--stop-at is for twremat");
    else if (cli->source.graph && cli->plan.cost)
        cli_error(cli, EXIT_USER, "E407", "the graph's nodes have times of their own",
                  "--cost is for models");
    else if (cli->ask.schedule && !cli->source.graph)
        cli_error(cli, EXIT_USER, "E407", "`scrimp dump --stage=remat` shows a model's schedule",
                  "--schedule is for --graph");
    else
        return true;
    return false;
}

static bool check_target(Cli *cli)
{
    const char *error;
    if (codegen_target(cli->pool, cli->build.march, false, &error))
        return true;
    return cli_error(cli, EXIT_USER, "E801", NULL, "%s", error) == EXIT_OK;
}

ExitCode verb_plan(Cli *cli)
{
    PlanSource of = {NULL, NULL};
    cli->plan.seed = cli->run.seed;
    if (!check_options(cli) || !check_target(cli) ||
        !cli_one_writes_output(cli, "--arena-csv", cli->ask.arena_csv) ||
        !cli_one_writes_output(cli, "--svg", cli->ask.svg))
        return EXIT_USER;
    if (cli->source.graph)
        of.graph = cli_read_graph(cli);
    else
        of.ast = cli_parse_model(cli);
    if (!of.graph && !of.ast)
        return EXIT_USER;
    if (cli->ask.max_batch)
        return cli_plan_max_batch(cli, of.ast);
    if (cli->source.count)
        return cli_plan_count(cli, of.ast);
    if (cli->ask.compare)
        return plan_compare(cli, &of);
    return cli->ask.sweep ? plan_sweep(cli, &of) : plan_one(cli, &of);
}
