#include "frontend/driver/cli_program.h"

#include "codegen/build/supports.h"
#include "frontend/driver/cli_file.h"
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

static FrontendOptions frontend_options_of(Cli *cli, const ProgramOptions *o)
{
    int n = cli->n_defs + o->n_extra_defs;
    OptionDef *defs = POOL_ARRAY(cli->pool, (size_t)n + 1, OptionDef);
    for (int i = 0; i < cli->n_defs; i++)
        defs[i] = cli->defs[i];
    for (int i = 0; i < o->n_extra_defs; i++)
        defs[cli->n_defs + i] = o->extra_defs[i];
    return (FrontendOptions){.defs = defs,
                             .n_defs = n,
                             .mode = o->mode,
                             .model = cli->model,
                             .supports = codegen_supports};
}

static ExitCode pass_failure(Cli *cli, const ProgramOptions *o, const PassContext *ctx)
{
    ExitCode code = ctx->report.status == REMAT_INFEASIBLE ? EXIT_BUDGET : EXIT_USER;
    if (code == EXIT_BUDGET && o->quiet_infeasible)
        return code;
    return cli_error(cli, code, ctx->error_code ? ctx->error_code : "E400", ctx->error_help, "%s",
                     ctx->error);
}

struct RematMemo *cli_memo(Cli *cli)
{
    if (!cli->memo)
        cli->memo = remat_memo_new(cli->pool, cli_store(cli));
    return cli->memo;
}

/* The cost model in use; what `profile` needs is measured first. */
static ExitCode set_costs(Cli *cli, const Ast *ast, const ProgramOptions *o, MeasureCosts *measure,
                          PassContext *ctx)
{
    ctx->cost = o->cost ? o->cost : cli->cost;
    const char *name = ctx->cost ? ctx->cost : ctx->graph->train.cost;
    const CostModel *model = name ? cost_model_find(name) : NULL;
    if (!model || model->cost || o->mode != FRONTEND_TRAIN || o->pipeline || !measure)
        return EXIT_OK;
    if (!cli->costs) {
        ExitCode code = measure(cli, ast, o, &cli->costs);
        if (code != EXIT_OK)
            return code;
    }
    ctx->measured = cli->costs->cost;
    ctx->measured_user = cli->costs->table;
    return EXIT_OK;
}

ExitCode cli_supported(Cli *cli, const Graph *g)
{
    const char *missing = codegen_unsupported(cli->pool, g);
    return missing ? cli_error(cli, EXIT_USER, "E111", NULL, "%s", missing) : EXIT_OK;
}

ExitCode program_build(Cli *cli, const Ast *ast, const ProgramOptions *o, MeasureCosts *measure,
                       Program *out)
{
    FrontendOptions options = frontend_options_of(cli, o);
    Graph *g = frontend_lower(cli->pool, cli->diag, ast, &options);
    if (!g || diag_error_count(cli->diag))
        return cli_diagnostics(cli);
    bool only_look = o->pipeline && !*o->pipeline; /* dump --stage=ir */
    if (o->mode == FRONTEND_TRAIN && !g->train.present && !only_look)
        return cli_error(cli, EXIT_USER, "E211", "add `train { ... }`; docs/language.md shows one",
                         "%s has no train section", cli->file);
    PassContext ctx = {.graph = g,
                       .pool = cli->pool,
                       .budget = o->budget,
                       .solver = o->solver,
                       .objective = o->objective,
                       .seed = o->seed,
                       .time_limit_seconds = o->time_limit_seconds,
                       .effort = cli->effort,
                       .memo = cli_memo(cli),
                       .stop_at = (int)cli->stop_at,
                       .n_threads = (int)cli->threads,
                       .mask_use = cli->no_masks ? MASKS_NEVER : o->mask_use,
                       .no_views = cli->no_views || o->no_views,
                       .checksums = o->checksums};
    ExitCode code = set_costs(cli, ast, o, measure, &ctx);
    if (code != EXIT_OK)
        return code;
    const char *pipeline = o->pipeline                 ? o->pipeline
                           : o->mode == FRONTEND_TRAIN ? pipeline_train
                                                       : pipeline_infer;
    bool ok = passes_run(&ctx, pipeline, o->observer, o->user);
    *out =
        (Program){.graph = ctx.graph, .plan = ctx.plan, .report = ctx.report, .masks = ctx.masks};
    if (!ok)
        return pass_failure(cli, o, &ctx);
    if (ctx.untrained && !cli->quiet && !cli->warned_untrained)
        fprintf(stderr, "warning: the loss does not depend on %s: not trained\n", ctx.untrained);
    cli->warned_untrained = ctx.untrained != NULL;
    cli_warnings(cli);
    return cli_supported(cli, ctx.graph);
}
