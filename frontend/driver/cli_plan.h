/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the two halves of `plan` share: rows of answers, for models and for graphs from elsewhere.
 */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_PLAN_H
#define SCRIMP_FRONTEND_DRIVER_CLI_PLAN_H

#include "frontend/driver/cli_program.h"
#include "frontend/driver/cli_progress.h"
#include "passes/paper_graph/paper_graph.h"
#include "passes/pass.h"
#include "passes/remat/external/external.h"

typedef struct PlanRow {
    const RematSolver *solver; /* NULL: no plan was made */
    RematReport report;
    MaskReport masks;
    int chunks; /* of rows of logits, for one loss; 0: whole */
    int64_t arena_bytes, arena_lower_bound_bytes;
    bool feasible;
    const ExternalPlan *external; /* NULL: of a model */
} PlanRow;

/* What is planned: one of the two. */
typedef struct PlanSource {
    const Ast *ast;
    const ExternalGraph *graph;
} PlanSource;

/* One plan of it.  quiet: that the budget cannot be met is left to the caller to say.  program: of
 * a model, what was built; or NULL. */
ExitCode cli_plan_once(Cli *cli, const PlanSource *of, const PlanOverride *own, bool quiet,
                       PlanRow *row, Program *program);
/* What operations cost in such a plan, with what has been measured. */
NodeCosts cli_plan_costs(const Cli *cli, const RematReport *r);
/* The object that `plan --json` prints; "optimal"; "scrimp", or "none". */
json_t *cli_row_json(const Cli *cli, const PlanRow *row);
const char *cli_row_status(const RematReport *r);
const char *cli_row_solver(const PlanRow *row);
/* Gets every row of a list as it is made; false: no more are wanted. */
typedef bool PlanRowSink(void *user, const PlanRow *row);
/* A row for every solver but those that need a MILP solver; EXIT_OK when one meets the budget. */
ExitCode cli_plan_solvers(Cli *cli, const PlanSource *of, Progress *progress, PlanRowSink *sink,
                          void *user);
/* n >= 2 budgets from the minimum to everything kept; a plan that serves a smaller budget better is
 * used for the larger one too, so that time never falls as memory shrinks. */
ExitCode cli_plan_budgets(Cli *cli, const PlanSource *of, int n, Progress *progress,
                          PlanRowSink *sink, void *user);

/* The model's forward pass by the rule cli->source.count; NULL after a message. */
const PaperGraph *cli_count_graph(Cli *cli, const Ast *ast);
/* --count: the papers' algorithms under the papers' models. */
ExitCode cli_plan_count(Cli *cli, const Ast *ast);
/* --max-batch: the largest option N whose plan fits the budget. */
ExitCode cli_plan_max_batch(Cli *cli, const Ast *ast);

/* False after a message: options that do not go together. */
bool cli_plan_check_options(Cli *cli);

/* --peak: what is in memory at the peak of a model's step, its graph after the passes; printed, or
 * set in json as "peak". */
void cli_plan_peak(Cli *cli, const PlanRow *row, const Graph *g, json_t *json);
/* --why: why an operation of it runs again, and what would be without that; printed, or set in json
 * as "why".  EXIT_USER after a message: nothing has that name. */
ExitCode cli_plan_why(Cli *cli, const PlanSource *of, const PlanRow *row, const Graph *g,
                      json_t *json);

/* cli->source.graph; NULL after a message. */
const ExternalGraph *cli_read_graph(Cli *cli);
ExitCode cli_plan_graph(Cli *cli, const ExternalGraph *g, const PlanOverride *own, bool quiet,
                        PlanRow *row);
/* Adds the keys that only graphs have. */
void cli_graph_json(const Cli *cli, const PlanRow *row, json_t *object);
/* "examples/gpt2.scrimp" and -D N=1: "gpt2.scrimp -D N=1" */
const char *cli_plan_title(const Cli *cli);
/* The step that percentages are of: nothing recomputed, no masks, copies for pieces. */
ExitCode cli_build_kept(Cli *cli, const Ast *ast, Program *out);
/* --svg: the picture of a row that is feasible.  program: the model's; NULL of a graph. */
ExitCode cli_write_picture(Cli *cli, const PlanSource *of, const Program *program,
                           const PlanRow *row);
/* "schedule: 0 1 2 1 3" */
void cli_print_schedule(const PlanRow *row);

#endif
