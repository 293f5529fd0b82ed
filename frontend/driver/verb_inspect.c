/* SPDX-License-Identifier: GPL-3.0-or-later */
/* check, opt: the verbs that only look. */
#include "frontend/driver/cli.h"
#include "frontend/driver/cli_program.h"

#include "codegen/build/supports.h"
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
    FrontendOptions o = {.defs = cli->source.defs,
                         .n_defs = cli->source.n_defs,
                         .mode = FRONTEND_TRAIN,
                         .model = cli->source.model,
                         .supports = codegen_supports};
    Graph *g = frontend_lower(cli->pool, cli->diag, ast, &o);
    if (!g || diag_error_count(cli->diag))
        return cli_diagnostics(cli);
    cli_warnings(cli);
    return check_step(cli, g);
}

typedef struct DumpAfter {
    Cli *cli;
    const char *pass; /* or "all" */
} DumpAfter;

static void dump_after(void *user, const Pass *pass, const Graph *g, double seconds)
{
    DumpAfter *d = user;
    (void)seconds;
    if (strcmp(pass->name, d->pass) != 0 && strcmp(d->pass, "all") != 0)
        return;
    StrBuf text = strbuf_new(d->cli->pool);
    graph_print(g, (PrintOptions){.no_loc = d->cli->output.no_loc}, &text);
    fprintf(stderr, "# after %s\n%s", pass->name, text.text);
}

bool cli_dump_after(Cli *cli, PassObserver **observer, void **user)
{
    *observer = NULL;
    if (!cli->dump.dump_after)
        return true;
    bool known = strcmp(cli->dump.dump_after, "all") == 0;
    for (const Pass *p = pass_table; p->name; p++)
        known = known || strcmp(p->name, cli->dump.dump_after) == 0;
    if (!known) {
        cli_error(cli, EXIT_USER, "E601", "`scrimp opt --help` lists the passes; `all` is each",
                  "no pass is called '%s'", cli->dump.dump_after);
        return false;
    }
    DumpAfter *d = POOL_NEW(cli->pool, DumpAfter);
    *d = (DumpAfter){cli, cli->dump.dump_after};
    *observer = dump_after;
    *user = d;
    return true;
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
    PassContext ctx = {.graph = g, .pool = cli->pool};
    void *user = NULL;
    PassObserver *observer;
    if (!cli_dump_after(cli, &observer, &user))
        return EXIT_USER;
    if (!passes_run(&ctx, cli->dump.passes ? cli->dump.passes : "", observer, user))
        return cli_error(cli, ctx.report.status == REMAT_INFEASIBLE ? EXIT_BUDGET : EXIT_USER,
                         ctx.error.code, ctx.error.help, "%s", ctx.error.message);
    StrBuf out = strbuf_new(cli->pool);
    graph_print(ctx.graph, (PrintOptions){.no_loc = cli->output.no_loc}, &out);
    if (ctx.plan)
        cli_print_plan(ctx.graph, ctx.plan, &out);
    fputs(out.text, stdout);
    return EXIT_OK;
}
