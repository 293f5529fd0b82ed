/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_program.h"

#include "codegen/build/supports.h"
#include "frontend/driver/cli_file.h"
#include "frontend/driver/cli_machine.h"
#include "frontend/driver/cli_store.h"
#include "ir/print.h"

#include <stdio.h>
#include <string.h>

const Ast *cli_parse_model(Cli *cli)
{
    size_t length = 0;
    bool piped = strcmp(cli->file, "-") == 0;
    const char *text = piped ? cli_read_file(cli, cli->file, CLI_MODEL_BYTES, &length) : NULL;
    if (piped && !text)
        return NULL;
    const Ast *ast = piped ? frontend_parse_text(cli->pool, cli->diag, cli->file, text, length)
                           : frontend_parse(cli->pool, cli->diag, cli->file);
    if (!ast || diag_error_count(cli->diag)) {
        cli_diagnostics(cli);
        return NULL;
    }
    return ast;
}

FrontendOptions cli_frontend_options(const Cli *cli, FrontendMode mode)
{
    return (FrontendOptions){.defs = cli->source.defs,
                             .n_defs = cli->source.n_defs,
                             .mode = mode,
                             .model = cli->source.model};
}

Graph *cli_lower(Cli *cli, const Ast *ast, const FrontendOptions *o)
{
    Graph *g = frontend_lower(cli->pool, cli->diag, ast, o);
    if (g && !diag_error_count(cli->diag))
        return g;
    cli_diagnostics(cli);
    return NULL;
}

/* With the program's own definitions behind the user's. */
static FrontendOptions frontend_options_of(Cli *cli, const ProgramOptions *o)
{
    FrontendOptions options = cli_frontend_options(cli, o->mode);
    OptionDef *defs =
        POOL_ARRAY(cli->pool, (size_t)(options.n_defs + o->n_extra_defs) + 1, OptionDef);
    for (int i = 0; i < options.n_defs; i++)
        defs[i] = options.defs[i];
    for (int i = 0; i < o->n_extra_defs; i++)
        defs[options.n_defs + i] = o->extra_defs[i];
    options.defs = defs;
    options.n_defs += o->n_extra_defs;
    options.supports = codegen_supports;
    return options;
}

static ExitCode pass_failure(Cli *cli, const ProgramOptions *o, const PassContext *ctx)
{
    ExitCode code = ctx->report.status == REMAT_INFEASIBLE ? EXIT_BUDGET : EXIT_USER;
    if (code == EXIT_BUDGET && o->quiet_infeasible)
        return code;
    return cli_error(cli, code, ctx->error.code ? ctx->error.code : "E400", ctx->error.help, "%s",
                     ctx->error.message);
}

struct SolutionCache *cli_solution_cache(Cli *cli)
{
    if (!cli->state->solution_cache)
        cli->state->solution_cache = solution_cache_new(cli->pool, cli_store(cli));
    return cli->state->solution_cache;
}

const char *cli_default_cost(const Cli *cli)
{
    const Backend *b = cli_backend(cli);
    return b->costs ? b->costs(cli->build.device) : cost_models->name;
}

bool cli_plan_request(const Cli *cli, const PlanSettings *file, const PlanOverride *own,
                      PlanRequest *out, RematError *error)
{
    PlanSettings s = plan_settings_merge(&cli->plan, file);
    s.n_threads = cli->build.threads;
    s.cost = s.cost && *s.cost ? s.cost : cli_default_cost(cli);
    if (!plan_request_read(cli->pool, &s, out, error))
        return false;
    out->budget = own->budget ? *own->budget : out->budget;
    out->solver = own->solver ? own->solver : out->solver;
    out->costs.model = own->cost ? own->cost : out->costs.model;
    out->masks = own->masks ? own->masks : out->masks;
    out->no_views |= own->no_views;
    out->no_norms |= own->no_norms;
    out->no_plain |= own->no_plain;
    return true;
}

/* What `profile` needs is measured first. */
static ExitCode set_costs(Cli *cli, const Ast *ast, const ProgramOptions *o, MeasureCosts *measure,
                          PlanRequest *request)
{
    if (request->costs.model->cost || o->pipeline || !measure)
        return EXIT_OK;
    if (!cli->state->costs) {
        ExitCode code = measure(cli, ast, o, request, &cli->state->costs);
        if (code != EXIT_OK)
            return code;
    }
    request->costs.measured = cli->state->costs->cost;
    request->costs.user = cli->state->costs->table;
    return EXIT_OK;
}

/* Where no plan is made, nothing of the request is refused. */
static ExitCode read_request(Cli *cli, const Ast *ast, const ProgramOptions *o,
                             const char *pipeline, MeasureCosts *measure, PassContext *ctx)
{
    PlanSettings section = remat_section(&ctx->graph->train);
    RematError e;
    if (!pipeline_has(pipeline, "remat")) {
        ctx->request.masks = cli->plan.no_masks ? MASKS_NEVER : o->plan.masks;
        ctx->request.no_views = cli->plan.no_views || o->plan.no_views;
        ctx->request.no_norms = cli->plan.no_norms || o->plan.no_norms;
        ctx->request.no_attention = cli->plan.no_attention;
        ctx->request.no_chunks = cli->plan.no_chunks;
        return EXIT_OK;
    }
    if (!cli_plan_request(cli, &section, &o->plan, &ctx->request, &e))
        return cli_error(cli, EXIT_USER, e.code, e.help, "%s", e.message);
    return set_costs(cli, ast, o, measure, &ctx->request);
}

ExitCode cli_supported(Cli *cli, const Graph *g)
{
    const char *missing = codegen_unsupported_by(cli->pool, cli_backend(cli), g);
    return missing ? cli_error(cli, EXIT_USER, "E111", NULL, "%s", missing) : EXIT_OK;
}

/* What a library would have computed is left to scrimp's own kernels, unless --fast says no. */
static bool tell_library(Cli *cli, const char *missing)
{
    if (cli->build.fast) {
        cli_error(cli, EXIT_USER, "E807", "without --fast, scrimp's own kernels are used",
                  "--fast: %s", missing);
        return false;
    }
    if (!cli->state->told_library)
        fprintf(stderr, "note: %s; scrimp's own kernels are used, as with --exact\n", missing);
    cli->state->told_library = true;
    return true;
}

/* Winograd's form is one of the processor's kernels. */
static bool tell_winograd(Cli *cli, const TrainSpec *train)
{
    if (!train->winograd || cli_backend(cli) == &cpu_backend)
        return true;
    if (cli->build.exact) {
        cli_error(cli, EXIT_USER, "E807",
                  "without --exact, convolutions on the device are direct; or winograd = false",
                  "--exact: a device has no kernels for winograd = true, which the bits of the "
                  "processor would need");
        return false;
    }
    if (!cli->state->told_winograd)
        fprintf(stderr, "note: winograd = true is for the processor's kernels: on the device "
                        "convolutions are computed as without it\n");
    cli->state->told_winograd = true;
    return true;
}

/* The passes' graphs are in steps, the program's is not. */
static ExitCode build_in(Pool *steps, Cli *cli, const Ast *ast, const ProgramOptions *o,
                         MeasureCosts *measure, Program *out)
{
    FrontendOptions options = frontend_options_of(cli, o);
    Graph *g = cli_lower(cli, ast, &options);
    if (!g)
        return EXIT_USER;
    bool only_look = o->pipeline && !*o->pipeline; /* dump --stage=ir */
    if (o->mode == FRONTEND_TRAIN && !g->train.present && !only_look)
        return cli_error(cli, EXIT_USER, "E211", "add `train { ... }`; docs/language.md shows one",
                         "%s has no train section", cli->file);
    const char *pipeline = o->pipeline                 ? o->pipeline
                           : o->mode == FRONTEND_TRAIN ? pipeline_train
                                                       : pipeline_infer;
    PassContext ctx = {.graph = graph_copy(steps, g),
                       .pool = cli->pool,
                       .solution_cache = cli_solution_cache(cli),
                       .checksums = o->checksums,
                       .supports = codegen_supports,
                       .library = cli->build.exact ? NULL : cli_backend(cli)->library,
                       .exact = cli_is_exact(cli),
                       .for_device = cli_backend(cli) != &cpu_backend,
                       .archs = cli_library_archs(cli)};
    if (!tell_winograd(cli, &g->train))
        return EXIT_USER;
    ExitCode code = read_request(cli, ast, o, pipeline, measure, &ctx);
    if (code != EXIT_OK)
        return code;
    bool ok = passes_run(&ctx, pipeline, o->observer, o->user);
    *out = (Program){.graph = ok ? graph_copy(cli->pool, ctx.graph) : NULL,
                     .plan = ctx.plan,
                     .report = ctx.report,
                     .masks = ctx.masks,
                     .chunks = ctx.chunks,
                     .folded = ctx.folded.data,
                     .n_folded = (int)ctx.folded.len};
    if (!ok)
        return pass_failure(cli, o, &ctx);
    if (ctx.library_missing && !tell_library(cli, ctx.library_missing))
        return EXIT_USER;
    if (cli->state->warned)
        diag_clear(cli->diag);
    else if (ctx.untrained && !cli->output.quiet)
        fprintf(stderr, "warning: the loss does not depend on %s: not trained\n", ctx.untrained);
    cli_warnings(cli);
    cli->state->warned = true;
    return cli_supported(cli, out->graph);
}

/* The graphs that passes leave behind them are gone before a step runs. */
ExitCode program_build(Cli *cli, const Ast *ast, const ProgramOptions *o, MeasureCosts *measure,
                       Program *out)
{
    Pool *steps = pool_new_child(cli->pool);
    ExitCode code = build_in(steps, cli, ast, o, measure, out);
    const MeasuredCosts *costs = cli->state->costs;
    if (costs)
        costs->forget_graph(costs->table);
    pool_free(steps);
    return code;
}
