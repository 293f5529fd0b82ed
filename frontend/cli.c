#include "frontend/cli_costs.h"
#include "frontend/cli_file.h"
#include "frontend/cli_store.h"

#include "codegen/supports.h"
#include "ir/print.h"
#include "passes/remat/remat.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

ExitCode cli_error(Cli *cli, ExitCode code, const char *error_code, const char *help,
                   const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *message = pool_vprintf(cli->pool, format, args);
    va_end(args);
    Span nowhere = {0, 0, 0};
    diag_error(cli->diag, nowhere, error_code, "%s", message);
    if (help)
        diag_help(cli->diag, "%s", help);
    cli_diagnostics(cli);
    return code;
}

ExitCode cli_diagnostics(Cli *cli)
{
    if (cli->json_errors)
        diag_print_json(cli->diag, stderr);
    else
        diag_print(cli->diag, stderr, cli->colour);
    diag_clear(cli->diag);
    return EXIT_USER;
}

void cli_warnings(Cli *cli)
{
    if (!diag_is_empty(cli->diag))
        cli_diagnostics(cli);
}

static void print_json(json_t *object, size_t precision)
{
    json_dumpf(object, stdout, JSON_REAL_PRECISION(precision));
    fputc('\n', stdout);
    json_decref(object);
}

void cli_print_json(json_t *object)
{
    print_json(object, 9);
}

void cli_print_exact_json(json_t *object)
{
    print_json(object, 15);
}

json_t *cli_json_number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

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
static ExitCode set_costs(Cli *cli, const Ast *ast, const ProgramOptions *o, PassContext *ctx)
{
    ctx->cost = o->cost ? o->cost : cli->cost;
    const char *name = ctx->cost ? ctx->cost : ctx->graph->train.cost;
    const CostModel *model = name ? cost_model_find(name) : NULL;
    if (!model || model->cost || o->mode != FRONTEND_TRAIN || o->pipeline)
        return EXIT_OK;
    if (!cli->costs) {
        ExitCode code = cli_measure_costs(cli, ast, o, &cli->costs);
        if (code != EXIT_OK)
            return code;
    }
    ctx->measured = cli_measured_cost;
    ctx->measured_user = cli->costs;
    return EXIT_OK;
}

ExitCode cli_supported(Cli *cli, const Graph *g)
{
    const char *missing = codegen_unsupported(cli->pool, g);
    return missing ? cli_error(cli, EXIT_USER, "E111", NULL, "%s", missing) : EXIT_OK;
}

ExitCode cli_build(Cli *cli, const Ast *ast, const ProgramOptions *o, Program *out)
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
    ExitCode code = set_costs(cli, ast, o, &ctx);
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
