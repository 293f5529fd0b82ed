/* SPDX-License-Identifier: GPL-3.0-or-later */
/* plan --count: the papers' algorithms on a paper's own graph. */
#include "frontend/driver/cli_plan.h"
#include "passes/paper_graph/paper_model.h"

#include <stdio.h>

static const int64_t MAX_STEPS = 4000000000; /* of one algorithm: some ten seconds */

static json_t *figures_json(const PaperFigures *f)
{
    return json_pack("{s:s,s:s,s:I,s:f,s:I,s:f,s:i,s:b,s:f}", "solver", f->solver, "strategy",
                     f->strategy, "model_bytes", (json_int_t)f->model_bytes, "model_overhead",
                     f->overhead, "live_bytes", (json_int_t)f->live_bytes, "live_overhead",
                     f->live_overhead, "kept", f->n_kept, "limited", (int)f->limited, "seconds",
                     f->seconds);
}

static void print_table_json(const PaperGraph *c, const PaperTable *t)
{
    json_t *rows = json_array();
    for (int k = 0; k < t->n; k++)
        json_array_append_new(rows, figures_json(&t->row[k]));
    cli_print_json(json_pack("{s:s,s:i,s:i,s:I,s:f,s:I,s:o}", "rule", c->rule->name, "vertices",
                             c->n_vertices, "edges", c->n_edges, "graph_bytes",
                             (json_int_t)t->graph_bytes, "graph_time", t->graph_time,
                             "all_kept_bytes", (json_int_t)t->all_kept_bytes, "rows", rows));
}

static void print_table_text(Pool *pool, const PaperGraph *c, const PaperTable *t)
{
    printf("%-28s %d vertices, %d edges, %s, time %g\n"
           "%-28s %s\n\n%-18s %-20s %10s %10s %10s %10s %6s %8s\n",
           c->rule->name, c->n_vertices, c->n_edges, bytes_text(pool, t->graph_bytes),
           t->graph_time, "step that keeps everything", bytes_text(pool, t->all_kept_bytes),
           "solver", "strategy", "model", "overhead", "with", "overhead", "kept", "seconds");
    printf("%-18s %-20s %10s %10s %10s\n", "", "", "bytes", "", "liveness");
    for (int k = 0; k < t->n; k++) {
        const PaperFigures *f = &t->row[k];
        printf("%-18s %-20s %10s %10g %10s %10g %6d %8.2f%s\n", f->solver, f->strategy,
               bytes_text(pool, f->model_bytes), f->overhead, bytes_text(pool, f->live_bytes),
               f->live_overhead, f->n_kept, f->seconds, f->limited ? " limit" : "");
    }
}

ExitCode cli_plan_count(Cli *cli, const Ast *ast)
{
    const PaperGraph *c = cli_count_graph(cli, ast);
    PaperTable t;
    const char *error;
    if (!c)
        return EXIT_USER;
    if (!paper_model(cli->pool, c, MAX_STEPS, &t, &error))
        return cli_error(cli, EXIT_USER, "E409", NULL, "%s: %s", cli->file, error);
    if (cli->output.json)
        print_table_json(c, &t);
    else
        print_table_text(cli->pool, c, &t);
    return EXIT_OK;
}
