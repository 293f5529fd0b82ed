/* SPDX-License-Identifier: GPL-3.0-or-later */
/* plan --graph: a graph from elsewhere. */
#include "frontend/driver/cli_file.h"
#include "frontend/driver/cli_plan.h"
#include "frontend/driver/cli_program.h"

#include <stdio.h>

const ExternalGraph *cli_read_graph(Cli *cli)
{
    size_t length;
    RematError error;
    const char *text = cli_read_file(cli, cli->source.graph, CLI_TEXT_BYTES, &length);
    const ExternalGraph *g = text ? external_read(cli->pool, text, length, &error) : NULL;
    if (text && !g)
        cli_error(cli, EXIT_USER, error.code, error.help, "%s: %s", cli->source.graph,
                  error.message);
    return g;
}

ExitCode cli_plan_graph(Cli *cli, const ExternalGraph *g, const PlanOverride *own, bool quiet,
                        PlanRow *row)
{
    const PlanSettings none = {0};
    PlanRequest request;
    ExternalPlan *plan = POOL_NEW(cli->pool, ExternalPlan);
    RematError error;
    if (!cli_plan_request(cli, &none, own, &request, &error))
        return cli_error(cli, EXIT_USER, error.code, error.help, "%s: %s", cli->source.graph,
                         error.message);
    bool ok = external_plan(cli->pool, g, &request, cli_solution_cache(cli), plan, &error);
    *row = (PlanRow){.solver = plan->report.solver,
                     .report = plan->report,
                     .arena_bytes = plan->arena_bytes,
                     .arena_lower_bound_bytes = plan->arena_lower_bound_bytes,
                     .feasible = ok,
                     .external = plan};
    if (ok)
        return EXIT_OK;
    ExitCode code = plan->report.status == REMAT_INFEASIBLE ? EXIT_BUDGET : EXIT_USER;
    if (code == EXIT_BUDGET && quiet)
        return code;
    return cli_error(cli, code, error.code, error.help, "%s: %s", cli->source.graph, error.message);
}

void cli_graph_json(const Cli *cli, const PlanRow *row, json_t *object)
{
    const ExternalPlan *plan = row->external;
    json_object_set_new(object, "time", cli_json_number(plan->figures.time));
    json_object_set_new(object, "time_once", cli_json_number(plan->figures.time_once));
    if (!cli->ask.schedule)
        return;
    json_t *schedule = json_array();
    for (int i = 0; i < plan->schedule.len; i++)
        json_array_append_new(schedule, json_integer(plan->schedule.node[i]));
    json_object_set_new(object, "schedule", schedule);
}

void cli_print_schedule(const PlanRow *row)
{
    fputs("\nschedule:", stdout);
    for (int i = 0; i < row->external->schedule.len; i++)
        printf(" %d", row->external->schedule.node[i]);
    putchar('\n');
}
