/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the verbs of the command line share: arguments, messages, building a program. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_H
#define SCRIMP_FRONTEND_DRIVER_CLI_H

#include "frontend/language/frontend.h"
#include "passes/remat/plan_request.h"

#include <jansson.h>

typedef enum ExitCode { EXIT_OK = 0, EXIT_USER = 1, EXIT_INTERNAL = 2, EXIT_BUDGET = 3 } ExitCode;

enum { CLI_MAX_DEFS = 64 };

/* What is compiled. */
typedef struct SourceSettings {
    OptionDef defs[CLI_MAX_DEFS];
    int n_defs;
    const char *model;
    const char *graph, *count; /* a graph from elsewhere; a paper's rule of counting */
} SourceSettings;

/* What `plan` answers beside one plan. */
typedef struct PlanQuestions {
    bool compare, max_batch, schedule;
    int64_t sweep;
    const char *arena_csv, *svg;
    const char *why; /* a name of the step */
    bool peak;
    int64_t frontier; /* report: budgets of the frontier */
    bool measure;
} PlanQuestions;

/* Machine code, and who runs it. */
typedef struct BuildSettings {
    const char *march, *cache, *device;
    int64_t threads, jobs;
    bool no_cache, no_tuning, no_strips, tune, exact, fast, inference;
    double older; /* of `cache clear` */
} BuildSettings;

/* A run of steps: train, eval, generate, bench and verify. */
typedef struct RunSettings {
    const char *data, *checkpoint, *log, *on_nan, *trace, *tensorboard, *against;
    int64_t steps, seed, keep_last;
    bool has_seed, resume, overwrite, overfit, no_ema, keep_best, keep_denormals;
} RunSettings;

typedef struct GenerateSettings {
    const char *prompt;
    int64_t tokens, top_k;
    double temperature;
} GenerateSettings;

enum { CLI_MAX_INPUTS = 16 };
typedef struct PredictSettings {
    const char *input[CLI_MAX_INPUTS]; /* PATH or NAME=PATH */
    int n_inputs;
} PredictSettings;

/* What `dump` and `opt` show, and after which passes. */
typedef struct DumpSettings {
    const char *stage, *diff, *passes, *dump_after;
    bool print_after_all;
} DumpSettings;

typedef struct OutputSettings {
    bool json, json_errors, colour, quiet, no_loc, dot;
    const char *out, *header, *name;
} OutputSettings;

/* What a verb finds out on its way and keeps, however often it builds the program. */
typedef struct DriverState {
    struct SolutionCache *solution_cache; /* of the solver */
    struct MeasuredCosts *costs;          /* of the cost model `profile`, once measured */
    const struct Tuning *tuning;          /* of kernels, once read; NULL: none */
    bool knows_tuning;                    /* whether it was */
    bool warned;                          /* of what is odd about the model */
    bool told_winograd;                   /* that a device has no such kernels */
    bool told_library;                    /* that one is not here */
    const char *last_note;                /* of the compiler */
    struct CudaIdentity *device;          /* the CUDA device, once asked */
    const char *no_device;                /* else why there is none */
    bool device_opened;                   /* its driver has started */
    bool device_failed;                   /* what it holds is not what a step left */
    bool no_room;                         /* on the device for the arena */
    int ended_by; /* the signal that ended the verb early but in order, or 0 */
} DriverState;

typedef struct Cli {
    Pool *pool;
    Diag *diag;
    DriverState *state;
    const struct Verb *verb;
    int argc; /* of the verb, which is the first of them */
    char **argv;
    const char *file;    /* model, IR text or "-" */
    const char *command; /* what the user has typed */
    SourceSettings source;
    PlanSettings plan; /* the command line's layer (passes/remat/plan_request.h) */
    PlanQuestions ask;
    BuildSettings build;
    RunSettings run;
    GenerateSettings generate;
    PredictSettings predict;
    DumpSettings dump;
    OutputSettings output;
} Cli;

typedef struct Verb {
    const char *name;
    const char *doc;     /* one line */
    const char *text;    /* paragraphs of --help */
    const char *options; /* names of the options it takes, separated by spaces; "[WORDS]" first:
                            what may stand in the place of FILE, or nothing */
    ExitCode (*run)(Cli *cli);
    bool compiles; /* and ends with an error where its cache cannot be used */
} Verb;

extern const Verb cli_verbs[];

/* Arguments after the program name: the verb and its settings.  False after a message; *exit_code
 * is set then (also for --help: 0). */
bool cli_parse(Cli *cli, int argc, char **argv, ExitCode *exit_code);
/* A second command line: that of cli with more options behind it, in one text whose words are
 * separated by spaces and may be quoted as in a shell.  Its state is its own.  NULL after a
 * message, with *exit_code. */
Cli *cli_parse_more(const Cli *cli, const char *options, ExitCode *exit_code);
/* Whether cli->verb has this option. */
bool cli_takes(const Cli *cli, const char *option);
/* Whether the user has given this option of it (of a default, or a value of 0, nothing is known).
 */
bool cli_is_set(const Cli *cli, const char *option);
/* A line for a shell: another verb (or the same) on the same file, with those of the user's options
 * that it takes, but not those in `without`, names separated by spaces. */
const char *cli_command_for(const Cli *cli, const char *verb, const char *without);

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
ExitCode verb_report(Cli *cli);
ExitCode verb_compile(Cli *cli);
ExitCode verb_data(Cli *cli);
ExitCode verb_train(Cli *cli);
ExitCode verb_eval(Cli *cli);
ExitCode verb_generate(Cli *cli);
ExitCode verb_predict(Cli *cli);
ExitCode verb_arena(Cli *cli);
ExitCode verb_bench(Cli *cli);
ExitCode verb_tune(Cli *cli);
ExitCode verb_verify(Cli *cli);
ExitCode verb_cache(Cli *cli);

#endif
