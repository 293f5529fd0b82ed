/* SPDX-License-Identifier: GPL-3.0-or-later */
/* plan: what a budget costs, by every solver, over a sweep of budgets. */
#include "codegen/build/compile.h"
#include "frontend/driver/cli_file.h"
#include "frontend/driver/cli_plan.h"
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

/* --arena-csv: what lies in the arena, when and where. */
static ExitCode write_buffers(Cli *cli, const Program *p)
{
    StrBuf text = strbuf_new(cli->pool);
    buffer_csv_write_plan(p->graph, p->plan, &text);
    return cli_write_file(cli, cli->ask.arena_csv, text.text);
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
    printf(
        "%-20s %-10s %10s %10s %10s %10s %8.1f%% %9s %8d %8.2f\n", cli_row_solver(row),
        cli_row_status(r), r->budget_bytes == INT64_MAX ? "-" : bytes_text(pool, r->budget_bytes),
        bytes_text(pool, r->peak_bytes), row->feasible ? bytes_text(pool, row->arena_bytes) : "-",
        row->feasible ? bytes_text(pool, row->arena_lower_bound_bytes) : "-", r->overhead_percent,
        least, r->recomputed_ops, r->solve_seconds);
}

/* Times of graphs are the user's: as many digits as they have. */
static void print_json(const Cli *cli, json_t *object)
{
    if (cli->source.graph)
        cli_print_exact_json(object);
    else
        cli_print_json(object);
}

/* Standard output cannot be written: further rows, which take minutes, are not made.  main says so,
 * or ends by SIGPIPE as other programs do. */
static bool output_is_lost(Cli *cli)
{
    if (signals_pipe_ends() && signals_reader_left(STDOUT_FILENO))
        cli->state->ended_by = SIGPIPE;
    return cli->state->ended_by || ferror(stdout);
}

/* A table, or a list in JSON. */
typedef struct RowList {
    Cli *cli;
    json_t *list;
    Progress progress;
    int n; /* rows of the table */
} RowList;

static RowList begin_rows(Cli *cli)
{
    return (RowList){cli, json_array(), progress_begin(SECONDS_TO_FIRST_LINE), 0};
}

/* PlanRowSink: the table's rows are seen, also through a pipe, as they come. */
static bool add_row(void *user, const PlanRow *row)
{
    RowList *l = user;
    progress_clear(&l->progress);
    if (l->cli->output.json) {
        json_array_append_new(l->list, cli_row_json(l->cli, row));
    } else {
        if (!l->n++)
            print_heading();
        print_row(l->cli->pool, row);
        fflush(stdout);
    }
    return !output_is_lost(l->cli);
}

static ExitCode end_rows(RowList *l, ExitCode code)
{
    if (l->cli->output.json && json_array_size(l->list) > 0 && code != EXIT_USER &&
        !output_is_lost(l->cli))
        print_json(l->cli, l->list);
    else
        json_decref(l->list);
    return code;
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
    Program p = {0};
    ExitCode code = cli_plan_once(cli, of, &(PlanOverride){0}, false, &row, &p);
    if (code == EXIT_OK && cli->ask.arena_csv)
        code = write_buffers(cli, &p);
    if (code == EXIT_OK && cli->ask.svg)
        code = cli_write_picture(cli, of, of->graph ? NULL : &p, &row);
    if (code == EXIT_USER)
        return code;
    if (cli->output.json)
        print_json(cli, cli_row_json(cli, &row));
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
    PlanRow row;
    RowList rows = begin_rows(cli);
    ExitCode code = end_rows(&rows, cli_plan_solvers(cli, of, &rows.progress, add_row, &rows));
    if (code == EXIT_BUDGET) /* once more by all together, for the message */
        cli_plan_once(cli, of, &(PlanOverride){0}, false, &row, NULL);
    return code;
}

static ExitCode plan_sweep(Cli *cli, const PlanSource *of)
{
    RowList rows = begin_rows(cli);
    return end_rows(&rows,
                    cli_plan_budgets(cli, of, (int)cli->ask.sweep, &rows.progress, add_row, &rows));
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
    else if ((cli->ask.peak || cli->ask.why) &&
             (cli->source.graph || cli->ask.compare || cli->ask.sweep || cli->source.count ||
              cli->ask.max_batch || cli->ask.arena_csv || cli->ask.svg))
        what = "--peak or --why and --graph, --compare, --sweep, --count, --max-batch, "
               "--arena-csv or --svg";
    else if (cli->ask.peak && cli->ask.why)
        what = "--peak and --why";
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
    if (cli->ask.peak)
        return cli_plan_peak(cli, &of);
    if (cli->ask.why)
        return cli_plan_why(cli, &of);
    if (cli->ask.compare)
        return plan_compare(cli, &of);
    return cli->ask.sweep ? plan_sweep(cli, &of) : plan_one(cli, &of);
}
