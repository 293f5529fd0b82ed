/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Options of `plan` that do not go together. */
#include "frontend/driver/cli_file.h"
#include "frontend/driver/cli_plan.h"
#include "passes/remat/solvers.h"

#include <string.h>

/* An answer of its own excludes every other one, and what shows a single plan. */
static const struct Clash {
    const char *option, *with;
} clashes[] = {
    {"compare", "sweep count max-batch arena-csv svg peak why"},
    {"sweep", "budget count max-batch arena-csv svg peak why"},
    {"count", "max-batch budget graph arena-csv svg peak why"},
    {"max-batch", "graph arena-csv svg peak why"},
    {"graph", "define model no-masks no-norms no-attention no-chunks arena-csv peak why"},
};

static const char *spelled(Pool *pool, const char *option)
{
    return strcmp(option, "define") == 0 ? "-D" : pool_printf(pool, "--%s", option);
}

/* "--sweep and --budget" of the first two that are given; NULL: none clash. */
static const char *find_clash(const Cli *cli)
{
    for (size_t i = 0; i < sizeof clashes / sizeof *clashes; i++) {
        const char *at = clashes[i].with;
        while (*at && cli_is_set(cli, clashes[i].option)) {
            size_t n = strcspn(at, " ");
            const char *other = pool_strndup(cli->pool, at, n);
            if (cli_is_set(cli, other))
                return pool_printf(cli->pool, "%s and %s", spelled(cli->pool, clashes[i].option),
                                   spelled(cli->pool, other));
            at += n + (at[n] == ' ');
        }
    }
    return NULL;
}

/* What is written to standard output is alone there. */
static const char *find_two_outputs(const Cli *cli)
{
    static const char *const names[] = {"--arena-csv -", "--svg -", "--peak", "--why"};
    const bool there[] = {cli_is_standard_output(cli->ask.arena_csv),
                          cli_is_standard_output(cli->ask.svg), cli->ask.peak,
                          cli->ask.why != NULL};
    const char *first = NULL;
    for (int i = 0; i < 4; i++) {
        if (there[i] && first)
            return pool_printf(cli->pool, "%s and %s", first, names[i]);
        if (there[i] && i < 2)
            first = names[i];
    }
    return NULL;
}

static bool has_leaf_bags(const char *name)
{
    const RematSolver *solver = name ? remat_solver_find(name) : remat_solvers;
    return solver && solver->has_leaf_bags;
}

/* A sweep is a list in memory and a search or a look-up each. */
enum { MOST_BUDGETS = 10000 };

bool cli_plan_check_options(Cli *cli)
{
    const char *what = cli->source.graph && cli->file != cli->source.graph ? "a model and --graph"
                                                                           : find_clash(cli);
    what = what ? what : find_two_outputs(cli);
    if (what)
        cli_error(cli, EXIT_USER, "E407", "leave one of them out", "%s exclude each other", what);
    else if (cli->ask.sweep > MOST_BUDGETS)
        cli_error(cli, EXIT_USER, "E407", NULL, "--sweep: at most %d budgets", MOST_BUDGETS);
    else if (cli->plan.twremat_leaf_bags && !has_leaf_bags(cli->plan.solver))
        cli_error(cli, EXIT_USER, "E407", "add --solver twremat", "--stop-at is for twremat");
    else if (cli->source.graph && cli->plan.cost)
        cli_error(cli, EXIT_USER, "E407", "the graph's nodes have times of their own",
                  "--cost is for models");
    else if (cli->ask.schedule && !cli->source.graph)
        cli_error(cli, EXIT_USER, "E407", "`scrimp dump --stage=remat` shows a model's schedule",
                  "--schedule is for --graph");
    else
        return cli_one_writes_output(cli, "--arena-csv", cli->ask.arena_csv) &&
               cli_one_writes_output(cli, "--svg", cli->ask.svg);
    return false;
}
