/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What --help prints, from the tables. */
#include "frontend/driver/cli_options.h"
#include "frontend/driver/cli_program.h"

#include "passes/paper_graph/paper_graph.h"
#include "passes/remat/solvers.h"

#include <stdio.h>
#include <string.h>

void help_print_usage(void)
{
    puts("scrimp compiles, plans and trains deep-learning models within a memory budget.\n\n"
         "usage: scrimp VERB FILE [-D option=value]... [options]\n\nverbs:");
    for (const Verb *v = cli_verbs; v->name; v++)
        printf("  %-9s  %s\n", v->name, v->doc);
    puts("\n`scrimp VERB --help` says more, `scrimp VERB FILE --help` also the file's options. "
         "FILE is\n"
         "a path, or - for standard input. The word of an option may be shortened while no other "
         "begins so:\n"
         "--thread 1 is --threads 1.\n"
         "Exit codes: 0 ok, 1 user error, 2 internal error, 3 budget that cannot be met, 130 "
         "interrupted.");
}

static void print_pass_table(void)
{
    puts("\npasses:");
    for (const Pass *p = pass_table; p->name; p++)
        printf("  %-9s  %s\n", p->name, p->doc);
}

static void print_solver_table(void)
{
    puts("\nsolvers:\n  best                 the best answer of those marked *; default: scrimp");
    for (const RematSolver *s = remat_solvers; s->name; s++)
        printf("  %-19s%c %s\n", s->name, s->in_portfolio ? '*' : ' ', s->doc);
}

static void print_cost_table(void)
{
    puts("\ncost models:");
    for (const CostModel *m = cost_models; m->name; m++)
        printf("  %-10s %s%s\n", m->name, m->doc, m == cost_models ? " (default)" : "");
}

static void print_rule_table(void)
{
    puts("\nrules:");
    for (const CountingRule *r = counting_rules; r->name; r++) {
        const char *left = r->name;
        for (const char *line = r->doc; line; left = "") {
            const char *end = strchr(line, '\n');
            printf("  %-12s  %.*s\n", left, end ? (int)(end - line) : (int)strlen(line), line);
            line = end ? end + 1 : NULL;
        }
    }
}

/* "FILE", or the words that stand in its place. */
static const char *operand_of(const Verb *v, int *length)
{
    const char *text = v->options[0] == '[' ? v->options : "FILE";
    *length = (int)strcspn(text, " ");
    return text;
}

void help_print_verb(const Verb *v)
{
    int n;
    const char *operand = operand_of(v, &n);
    printf("usage: scrimp %s %.*s [options]\n\n%s.\n%s\n\noptions:\n", v->name, n, operand, v->doc,
           v->text);
    for (int i = 0; i < cli_n_options; i++) {
        const OptionRow *o = &cli_options[i];
        if (!verb_takes(v, o->name))
            continue;
        char letter[6] = "    ";
        if (o->letter)
            snprintf(letter, sizeof letter, "-%c, ", o->letter);
        char left[64];
        snprintf(left, sizeof left, "%s--%s%s%s", letter, o->name, o->argument ? " " : "",
                 o->argument ? o->argument : "");
        printf("  %-30s  %s\n", left, o->doc);
    }
    if (verb_takes(v, "passes"))
        print_pass_table();
    if (verb_takes(v, "count"))
        print_rule_table();
    if (verb_takes(v, "solver"))
        print_solver_table();
    if (verb_takes(v, "cost"))
        print_cost_table();
}

ExitCode help_print_model_options(Cli *cli)
{
    const Ast *ast = cli_parse_model(cli);
    if (!ast)
        return EXIT_USER;
    const OptionInfo *o;
    int n = frontend_options(cli->pool, ast, &o);
    printf("\noptions of %s:\n", cli->file);
    for (int i = 0; i < n; i++) {
        const char *left = pool_printf(cli->pool, "-D %s=%s", o[i].name, o[i].default_text);
        printf("  %-30s  %s%s%s%s%s\n", left, o[i].doc ? o[i].doc : "", o[i].doc ? ": " : "",
               o[i].type, o[i].domain_text ? " in " : "", o[i].domain_text ? o[i].domain_text : "");
    }
    return EXIT_OK;
}
