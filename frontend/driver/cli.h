/* What the verbs of the command line share: arguments, messages, building a program. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_H
#define SCRIMP_FRONTEND_DRIVER_CLI_H

#include "frontend/language/frontend.h"
#include "passes/remat/plan_request.h"

#include <jansson.h>

typedef enum ExitCode { EXIT_OK = 0, EXIT_USER = 1, EXIT_INTERNAL = 2, EXIT_BUDGET = 3 } ExitCode;

enum { CLI_MAX_DEFS = 64 };

typedef struct Cli {
    Pool *pool;
    Diag *diag;
    const char *verb;
    const char *file; /* model, IR text or "-" */
    OptionDef defs[CLI_MAX_DEFS];
    int n_defs;
    bool json, json_errors, colour, no_loc, no_cache, resume, overwrite, overfit, quiet;
    const char *model, *stage, *diff, *passes, *dump_after, *data, *out, *log, *march, *cache,
        *header, *name, *arena_csv, *svg, *prompt, *checkpoint, *count, *on_nan, *graph;
    int64_t steps, seed, threads, sweep, tokens, top_k, jobs;
    bool has_seed, compare, max_batch, dot, schedule;
    double temperature, older;
    PlanSettings plan;           /* what the command line says of plans */
    struct RematMemo *memo;      /* of the solver, for every time the program is built */
    struct MeasuredCosts *costs; /* of the cost model `profile`, once measured */
    bool warned_untrained;       /* once, however often the program is built */
    const char *last_note;       /* of the compiler */
    int ended_by;                /* the signal that ended the verb early but in order, or 0 */
} Cli;

typedef struct Verb {
    const char *name;
    const char *doc;     /* one line */
    const char *text;    /* paragraphs of --help */
    const char *options; /* names of the options it takes, separated by spaces; "[WORDS]" first:
                            what may stand in the place of FILE, or nothing */
    ExitCode (*run)(Cli *cli);
} Verb;

extern const Verb cli_verbs[];

/* Arguments after the program name.  False after a message; *exit_code is set then (also for
 * --help: 0). */
bool cli_parse(Cli *cli, int argc, char **argv, const Verb **verb, ExitCode *exit_code);
/* Whether cli->verb has this option. */
bool cli_takes(const Cli *cli, const char *option);

/* An error without a place in the source: "scrimp: error: ...", or JSON with --error-format=json.
 */
ExitCode cli_error(Cli *cli, ExitCode code, const char *error_code, const char *help,
                   const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Prints collected diagnostics and forgets them; EXIT_USER. */
ExitCode cli_diagnostics(Cli *cli);
/* The same when there are only warnings, if any. */
void cli_warnings(Cli *cli);
void cli_print_json(json_t *object);       /* to stdout, one line, 9 digits; releases it */
void cli_print_exact_json(json_t *object); /* the same with 15 digits */
json_t *cli_json_number(double x);         /* JSON has no NaN or infinity: null */

ExitCode verb_check(Cli *cli);
ExitCode verb_summary(Cli *cli);
ExitCode verb_dump(Cli *cli);
ExitCode verb_opt(Cli *cli);
ExitCode verb_plan(Cli *cli);
ExitCode verb_compile(Cli *cli);
ExitCode verb_train(Cli *cli);
ExitCode verb_eval(Cli *cli);
ExitCode verb_generate(Cli *cli);
ExitCode verb_arena(Cli *cli);
ExitCode verb_bench(Cli *cli);
ExitCode verb_verify(Cli *cli);
ExitCode verb_cache(Cli *cli);

#endif
