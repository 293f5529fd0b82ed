/* SPDX-License-Identifier: GPL-3.0-or-later */
/* check, opt: the verbs that only look. */
#include "frontend/driver/cli.h"
#include "frontend/driver/cli_program.h"

#include "codegen/build/supports.h"
#include "frontend/driver/cli_dump.h"
#include "frontend/driver/cli_file.h"
#include "ir/print.h"

#include <stdio.h>
#include <string.h>

/* What only the step shows: a loss that is no number, or that depends on no parameter. */
static ExitCode check_step(Cli *cli, Graph *g)
{
    PassContext ctx = {.graph = g, .pool = cli->pool};
    if (!g->train.present)
        return EXIT_OK;
    if (!passes_run(&ctx, "dce,autodiff", NULL, NULL))
        return cli_error(cli, EXIT_USER, ctx.error.code, ctx.error.help, "%s", ctx.error.message);
    return cli_supported(cli, ctx.graph);
}

ExitCode verb_check(Cli *cli)
{
    const Ast *ast = cli_parse_model(cli);
    if (!ast)
        return EXIT_USER;
    FrontendOptions o = cli_frontend_options(cli, FRONTEND_TRAIN);
    o.supports = codegen_supports;
    Graph *g = cli_lower(cli, ast, &o);
    if (!g)
        return EXIT_USER;
    cli_warnings(cli);
    return check_step(cli, g);
}

ExitCode verb_opt(Cli *cli)
{
    size_t length;
    const char *text = cli_read_file(cli, cli->file, CLI_TEXT_BYTES, &length);
    if (!text)
        return EXIT_USER;
    Graph *g = graph_read(cli->pool, cli->file, text, length, cli->diag);
    if (!g || diag_error_count(cli->diag))
        return cli_diagnostics(cli);
    PassContext ctx = {.graph = g, .pool = cli->pool, .supports = codegen_supports};
    void *user = NULL;
    const char *passes = cli->dump.passes ? cli->dump.passes : "";
    PassObserver *observer = cli_dump_after(cli, &user);
    if (!cli_dump_after_runs(cli, passes, "here", "name it in --passes, too"))
        return EXIT_USER;
    if (!passes_run(&ctx, passes, observer, user))
        return cli_error(cli, ctx.report.status == REMAT_INFEASIBLE ? EXIT_BUDGET : EXIT_USER,
                         ctx.error.code, ctx.error.help, "%s", ctx.error.message);
    StrBuf out = strbuf_new(cli->pool);
    cli_put_opt_line(cli, passes, &out);
    graph_print(ctx.graph, (PrintOptions){.no_loc = cli->output.no_loc}, &out);
    if (ctx.plan)
        cli_print_plan(ctx.graph, ctx.plan, &out);
    fputs(out.text, stdout);
    return EXIT_OK;
}
