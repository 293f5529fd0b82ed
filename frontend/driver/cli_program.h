/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From a model to a graph after the passes. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_PROGRAM_H
#define SCRIMP_FRONTEND_DRIVER_CLI_PROGRAM_H

#include "frontend/driver/cli.h"
#include "passes/pass.h"

/* Parses cli->file; NULL after printing diagnostics. */
const Ast *cli_parse_model(Cli *cli);
/* What the command line says of a model: which one, and its -D. */
FrontendOptions cli_frontend_options(const Cli *cli, FrontendMode mode);
/* The model's graph before any pass; NULL after printing diagnostics. */
Graph *cli_lower(Cli *cli, const Ast *ast, const FrontendOptions *o);
/* A graph after the passes. */
typedef struct Program {
    Graph *graph;
    MemPlan *plan;
    RematReport report;
    MaskReport masks;
    int chunks;               /* of rows of logits, for one loss; 0: whole */
    const FoldedNorm *folded; /* by the pass fold_norms */
    int n_folded;
} Program;
/* What a verb asks of a plan in the place of the user's settings; NULL or 0: what they say. */
typedef struct PlanOverride {
    const Budget *budget;
    const RematSolver *solver;
    const CostModel *cost;
    MaskUse masks;
    bool no_views, no_norms, no_plain;
} PlanOverride;
typedef struct ProgramOptions {
    FrontendMode mode;
    PlanOverride plan;
    bool checksums;
    const char *pipeline;        /* NULL = by mode */
    const OptionDef *extra_defs; /* on top of the command line's */
    int n_extra_defs;
    PassObserver *observer;
    void *user;
    bool quiet_infeasible; /* leave the message to the caller */
} ProgramOptions;
struct SolutionCache *cli_solution_cache(Cli *cli);
/* What a cost model that measures knows. */
typedef struct MeasuredCosts {
    MeasuredCost *cost;
    void (*forget_graph)(void *user); /* whose costs it looked up last: it is to be freed */
    void *table;                      /* the user */
} MeasuredCosts;
/* Measures what of the model has not been measured yet and a plan for this request asks for. *out
 * stays as it is unless EXIT_OK is returned. */
typedef ExitCode MeasureCosts(Cli *cli, const Ast *ast, const ProgramOptions *o,
                              const PlanRequest *request, MeasuredCosts **out);

/* The cost model for whom nobody names one: --device decides. */
const char *cli_default_cost(const Cli *cli);
/* The settings of the command line over those of a model's file (or none), and over both what the
 * verb asks for.  False with the user's mistake. */
bool cli_plan_request(const Cli *cli, const PlanSettings *file, const PlanOverride *own,
                      PlanRequest *out, RematError *error);

/* The model's graph after the passes.  measure: for the cost model `profile`; NULL where that is
 * not the model in use.  Verbs call cli_build (cli_build.h). */
ExitCode program_build(Cli *cli, const Ast *ast, const ProgramOptions *o, MeasureCosts *measure,
                       Program *out);
/* Whether there is code for every operation of a graph that passes have made; a message if not. */
ExitCode cli_supported(Cli *cli, const Graph *g);

#endif
