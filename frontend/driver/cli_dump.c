/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_dump.h"

#include "frontend/driver/cli_machine.h"
#include "frontend/driver/cli_program.h"
#include "ir/print.h"
#include "ir/text.h"

#include <stdio.h>
#include <string.h>

void cli_print_plan(const Graph *g, const MemPlan *plan, StrBuf *out)
{
    const PlanText text = {.offset = plan->offset,
                           .persistent_bytes = plan->persistent_bytes,
                           .arena_bytes = plan->arena_bytes,
                           .peak_bytes = plan->peak_bytes,
                           .peak_node = plan->peak_node};
    graph_print_plan(g, &text, out);
}

/* --- the line for opt --- */

/* The end of the word of a pipeline that begins here. */
static const char *word_end(const char *at)
{
    at += strcspn(at, ",(");
    return *at == '(' ? at + strcspn(at, ")") + 1 : at;
}

int cli_pipeline_count(const char *pipeline)
{
    int n = 0;
    for (const char *at = pipeline; *at; at += *at == ',') {
        at = word_end(at);
        n++;
    }
    return n;
}

const char *cli_pipeline_first(Pool *pool, const char *pipeline, int n)
{
    const char *end = pipeline;
    for (int i = 0; i < n; i++)
        end = word_end(end + (i > 0));
    return pool_strndup(pool, pipeline, (size_t)(end - pipeline));
}

/* A pass that does nothing here, and the way out. */
typedef struct PassOff {
    const char *pass;
    bool off;
    const char *help;
} PassOff;

/* NULL: the pass is on. */
static const char *why_off(const Cli *cli, const char *word, size_t length)
{
    const PassOff passes[] = {
        {"masks", cli->plan.no_masks, "leave --no-masks out"},
        {"views", cli->plan.no_views, "leave --no-views out"},
        {"norms", cli->plan.no_norms, "leave --no-norms out"},
        {"norms", cli_backend(cli) != &cpu_backend, "it is for --device cpu"},
        {"attention", cli->plan.no_attention, "leave --no-attention out"},
        {"chunks", cli->plan.no_chunks, "leave --no-chunks out"},
        {"sums", cli->plan.no_views, "leave --no-views out"},
        {"transposes", cli->plan.no_views, "leave --no-views out"},
        {"pairs", cli->build.exact, "leave --exact out"},
        {"pairs", cli_backend(cli) != &cpu_backend, "it is for --device cpu"},
        {"sums", cli_backend(cli) != &cpu_backend, "it is for --device cpu"},
        {"transposes", cli_backend(cli) != &cpu_backend, "it is for --device cpu"},
    };
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
        if (passes[i].off && strlen(passes[i].pass) == length &&
            memcmp(word, passes[i].pass, length) == 0)
            return passes[i].help;
    return NULL;
}

static void put_argument(StrBuf *out, const char *name, const char *value)
{
    if (value)
        strbuf_printf(out, "%s%s=%s", out->len ? "," : "", name, value);
}

/* "(budget=40%)": what the command line says beyond the remat section, which the IR has. */
static const char *remat_arguments(const Cli *cli, const Graph *g)
{
    StrBuf list = strbuf_new(cli->pool), effort = strbuf_new(cli->pool);
    const char *cost = cli->plan.cost, *usual = cli_default_cost(cli);
    bool says_cost = cost || (g->train.cost && *g->train.cost);
    if (!says_cost && strcmp(usual, cost_models->name) != 0)
        cost = usual;
    if (cli->plan.effort > 0)
        text_put_double(&effort, cli->plan.effort);
    put_argument(&list, "budget", cli->plan.budget);
    put_argument(&list, "solver", cli->plan.solver);
    put_argument(&list, "objective", cli->plan.objective);
    put_argument(&list, "cost", cost);
    put_argument(&list, "effort", effort.len ? effort.text : NULL);
    put_argument(&list, "views", cli->plan.no_views ? "no" : NULL);
    return list.len ? pool_printf(cli->pool, "(%s)", list.text) : "";
}

const char *cli_dump_pipeline(const Cli *cli, const char *end, const Graph *g)
{
    StrBuf out = strbuf_new(cli->pool);
    const char *at = pipeline_before(cli->pool, end);
    for (; *at; at += *at == ',') {
        size_t length = strcspn(at, ",");
        bool remat = length == strlen("remat") && memcmp(at, "remat", length) == 0;
        if (!why_off(cli, at, length)) {
            strbuf_put(&out, out.len ? "," : "");
            strbuf_putn(&out, at, length);
            strbuf_put(&out, remat && g ? remat_arguments(cli, g) : "");
        }
        at += length;
    }
    return out.text;
}

void cli_put_opt_line(const Cli *cli, const char *pipeline, StrBuf *out)
{
    bool libraries =
        cli_backend(cli)->library && !cli->build.exact && pipeline_has(pipeline, "library");
    if (libraries)
        strbuf_put(out, "# no `scrimp opt` line: the device's libraries have a say (not with "
                        "--exact)\n");
    else if (*pipeline)
        strbuf_printf(out, "# scrimp opt%s -p '%s' FILE.ir\n",
                      cli->output.no_loc ? " --no-loc" : "", pipeline);
}

/* --- --dump-after --- */

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

bool cli_dump_after_runs(Cli *cli, const char *pipeline, const char *where, const char *help)
{
    const char *name = cli->dump.dump_after;
    bool all = name && strcmp(name, "all") == 0, known = all;
    for (const Pass *p = pass_table; name && p->name; p++)
        known = known || strcmp(p->name, name) == 0;
    if (!name || (known && (all ? *pipeline != '\0' : pipeline_has(pipeline, name))))
        return true;
    if (!known)
        cli_error(cli, EXIT_USER, "E601", "`scrimp opt --help` lists the passes; `all` is each",
                  "no pass is called '%s'", name);
    else if (why_off(cli, name, strlen(name)))
        cli_error(cli, EXIT_USER, "E601", why_off(cli, name, strlen(name)),
                  "--dump-after %s: the pass is switched off", name);
    else
        cli_error(cli, EXIT_USER, "E601", help, "--dump-after %s: %s %s", name,
                  all ? "no pass runs" : "this pass does not run", where);
    return false;
}

PassObserver *cli_dump_after(Cli *cli, void **user)
{
    DumpAfter *d = POOL_NEW(cli->pool, DumpAfter);
    *d = (DumpAfter){cli, cli->dump.dump_after};
    *user = d;
    return cli->dump.dump_after ? dump_after : NULL;
}
