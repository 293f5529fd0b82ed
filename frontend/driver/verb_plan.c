/* SPDX-License-Identifier: GPL-3.0-or-later */
/* plan: what a budget costs, by every solver, over a sweep of budgets. */
#include "codegen/build/compile.h"
#include "frontend/driver/cli_file.h"
#include "frontend/driver/cli_plan.h"
#include "frontend/driver/cli_signals.h"
#include "passes/memplan/buffer_csv.h"

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
    if (r->recomputed_ops == 0 && r->order_bound_bytes > 0)
        printf("no order without recomputation needs less    %s\n",
               bytes_text(pool, r->order_bound_bytes));
    if (row->chunks)
        printf("logits of a loss                             in %d parts, one after another\n",
               row->chunks);
    if (row->masks.tensors)
        printf(
            "saved as bits or indices                     %d tensor%s (%.2f%% of a step's time)\n",
            row->masks.tensors, row->masks.tensors > 1 ? "s" : "", row->masks.overhead_percent);
    if (r->loops)
        printf("loops                                        %s\n", r->loops);
    putchar('\n');
}

static void print_plan(const Cli *cli, const PlanRow *row)
{
    print_facts(cli->pool, row);
    print_heading();
    print_row(cli->pool, row);
    if (cli->ask.schedule)
        cli_print_schedule(row);
    if (row->report.treewidth > 0)
        printf("\ntree decomposition of width %d\n", row->report.treewidth);
    if (row->feasible && row->arena_bytes < row->report.peak_bytes)
        puts("\nPieces of concatenations and slices lie inside of one another in the arena; the "
             "peak counts copies.");
    if (row->feasible && row->arena_bytes == row->arena_lower_bound_bytes)
        puts("\nThe arena equals its lower bound: no placement of this schedule is smaller.");
}

/* --peak and --why: under their names in the object of --json, or as text in the plan's place. */
static ExitCode answer_questions(Cli *cli, const PlanSource *of, const PlanRow *row,
                                 const Program *p, json_t *json)
{
    if (cli->ask.peak)
        cli_plan_peak(cli, row, p->graph, json);
    if (cli->ask.peak && cli->ask.why && !json)
        putchar('\n');
    return cli->ask.why ? cli_plan_why(cli, of, row, p->graph, json) : EXIT_OK;
}

static ExitCode tell_plan(Cli *cli, const PlanSource *of, const PlanRow *row, const Program *p)
{
    json_t *json = cli->output.json ? cli_row_json(cli, row) : NULL;
    bool questions = row->feasible && (cli->ask.peak || cli->ask.why);
    ExitCode code = questions ? answer_questions(cli, of, row, p, json) : EXIT_OK;
    if (json && code == EXIT_OK)
        print_json(cli, json);
    else
        json_decref(json);
    if (!json && !questions && !cli_is_standard_output(cli->ask.arena_csv) &&
        !cli_is_standard_output(cli->ask.svg))
        print_plan(cli, row);
    return code;
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
    ExitCode told = tell_plan(cli, of, &row, &p);
    return code == EXIT_OK ? told : code;
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
    if (!cli_plan_check_options(cli) || !check_target(cli))
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
