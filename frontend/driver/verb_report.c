/* SPDX-License-Identifier: GPL-3.0-or-later */
/* report: a page that shows a plan. */
#include "frontend/driver/cli_file.h"
#include "frontend/driver/cli_machine.h"
#include "frontend/driver/cli_plan.h"
#include "frontend/driver/cli_profile.h"
#include "frontend/driver/report/report.h"

#include "ir/print.h"
#include "runtime/vocab.h"

#include <string.h>

/* A plan takes seconds: from then on readers that are no terminal hear of it. */
static const double SECONDS_TO_FIRST_LINE = 10;
static const char default_name[] = "report.html";

typedef struct Collector {
    Cli *cli;
    Progress progress;
    json_t *rows;
} Collector;

/* PlanRowSink */
static bool collect(void *user, const PlanRow *row)
{
    Collector *c = user;
    json_array_append_new(c->rows, cli_row_json(c->cli, row));
    return true;
}

/* Where no budget is small enough for a solver, its row says so: that is no failure here. */
static ExitCode collect_rows(Collector *c, const PlanSource *of, bool budgets, json_t **out)
{
    Cli *cli = c->cli;
    const char *solver = cli->plan.solver;
    c->rows = json_array();
    ExitCode code =
        budgets ? cli_plan_budgets(cli, of, (int)cli->ask.frontier, &c->progress, collect, c)
                : cli_plan_solvers(cli, of, &c->progress, collect, c);
    cli->plan.solver = solver;
    *out = c->rows;
    return code == EXIT_BUDGET ? EXIT_OK : code;
}

/* JSON is UTF-8, which names of files and comments of models need not be. */
static const char *as_utf8(Pool *pool, const char *text)
{
    StrBuf out = strbuf_new(pool);
    for (const char *end = text + strlen(text); text < end;) {
        uint32_t code;
        int n = utf8_decode((const unsigned char *)text, end - text, &code);
        if (n)
            strbuf_putn(&out, text, (size_t)n);
        else
            strbuf_put(&out, "\xef\xbf\xbd");
        text += n ? n : 1;
    }
    return out.text;
}

static const char *text_of(Pool *pool, const Graph *g)
{
    StrBuf text = strbuf_new(pool);
    graph_print(g, (PrintOptions){0}, &text);
    return as_utf8(pool, text.text);
}

/* --- measurements --- */

static json_t *threads_json(const StepProfile *p)
{
    json_t *a = json_array();
    for (int i = 0; i < p->n_tracks; i++) {
        json_t *events = json_array();
        for (int k = 0; k < p->track[i].n; k++) {
            const ThreadEvent *e = &p->track[i].event[k];
            json_array_append_new(events, json_pack("[f,f,i]", e->start, e->seconds, e->kernel));
        }
        json_array_append_new(a,
                              json_pack("{s:s,s:o}", "name", p->track[i].name, "events", events));
    }
    return a;
}

static bool measure(Cli *cli, const Program *planned, Report *r)
{
    StepProfile p;
    int64_t steps = cli->run.steps ? cli->run.steps : PROFILE_STEPS;
    cli->build.no_strips = true; /* each operation by itself */
    if (!profile_measure(cli, planned, steps, &p))
        return false;
    r->node_seconds = p.node_seconds;
    r->measured = json_pack("{s:I,s:f,s:f,s:f,s:o,s:o}", "steps", (json_int_t)p.steps,
                            "seconds_per_step", p.step.median, "peak_gflops", p.peak_gflops,
                            "peak_gbytes_per_second", p.peak_gbytes_per_second, "kernels",
                            profile_kernels_json(&p), "threads", threads_json(&p));
    return true;
}

/* --- the plan --- */

/* What the page says of the plan itself and of the step with everything kept. */
static ExitCode describe(Cli *cli, const PlanSource *of, Report *r)
{
    PlanRow row;
    Program planned, kept;
    ExitCode code = cli_plan_once(cli, of, &(PlanOverride){0}, false, &row, &planned);
    if (code == EXIT_OK)
        code = cli_build_kept(cli, of->ast, &kept);
    if (code != EXIT_OK)
        return code;
    const NodeCosts costs = cli_plan_costs(cli, &row.report);
    r->in_seconds = row.report.cost->in_seconds;
    r->planned = step_facts(cli->pool, planned.graph, planned.plan, &costs);
    r->kept = step_facts(cli->pool, kept.graph, NULL, &costs);
    r->reruns = rerun_effects(cli->pool, planned.graph);
    r->ir_before = text_of(cli->pool, kept.graph);
    r->ir_after = text_of(cli->pool, planned.graph);
    r->plan = cli_row_json(cli, &row);
    return !cli->ask.measure || measure(cli, &planned, r) ? EXIT_OK : machine_failure(cli);
}

static ExitCode compare(Cli *cli, const PlanSource *of, Report *r)
{
    Collector c = {.cli = cli, .progress = progress_begin(SECONDS_TO_FIRST_LINE)};
    ExitCode code = EXIT_OK;
    r->frontier = r->solvers = NULL;
    if (cli->ask.frontier)
        code = collect_rows(&c, of, true, &r->frontier);
    if (code == EXIT_OK && cli->ask.frontier)
        code = collect_rows(&c, of, false, &r->solvers);
    progress_clear(&c.progress);
    r->frontier = r->frontier ? r->frontier : json_array();
    r->solvers = r->solvers ? r->solvers : json_array();
    return code;
}

static void release(Report *r)
{
    json_decref(r->plan);
    json_decref(r->frontier);
    json_decref(r->solvers);
    json_decref(r->measured);
}

static ExitCode write_page(Cli *cli, Report *r)
{
    const char *path = cli->output.out ? cli->output.out : default_name;
    StrBuf page = strbuf_new(cli->pool);
    json_t *data = report_json(cli->pool, r);
    char *text = json_dumps(data, JSON_COMPACT | JSON_REAL_PRECISION(9));
    report_page(&page, text);
    free(text);
    json_decref(data);
    ExitCode code = cli_write_file(cli, path, page.text);
    if (code == EXIT_OK && !cli->output.quiet && !cli_is_standard_output(path))
        fprintf(stderr, "wrote %s: open it in a browser\n", path);
    return code;
}

ExitCode verb_report(Cli *cli)
{
    size_t length;
    Report r = {.version = SCRIMP_VERSION,
                .command = as_utf8(cli->pool, cli->command),
                .title = as_utf8(cli->pool, cli_plan_title(cli)),
                .device = cli->build.device ? cli->build.device : "cpu"};
    if (cli->ask.frontier == 1)
        return cli_error(cli, EXIT_USER, "E407", "say 0 for none, or 2 or more",
                         "--frontier 1: a frontier has at least 2 budgets");
    if (cli->run.steps && !cli->ask.measure)
        return cli_error(cli, EXIT_USER, "E407", "add --measure", "--steps is for --measure");
    if (!cli_can_write(cli, cli->output.out))
        return EXIT_USER;
    PlanSource of = {.ast = cli_parse_model(cli)};
    if (!of.ast)
        return EXIT_USER;
    r.source_name = as_utf8(cli->pool, diag_source_name(cli->diag, 1));
    const char *text = diag_source_text(cli->diag, 1, &length);
    r.source = as_utf8(cli->pool, pool_strndup(cli->pool, text, length));
    ExitCode code = describe(cli, &of, &r);
    if (code == EXIT_OK)
        code = compare(cli, &of, &r);
    if (code == EXIT_OK)
        return write_page(cli, &r);
    release(&r);
    return code;
}
