/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Measures the variants of a step's kernels on this machine, and keeps those that are faster than
 * the defaults. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_TUNE_H
#define SCRIMP_FRONTEND_DRIVER_CLI_TUNE_H

#include "frontend/driver/cli_program.h"
#include "frontend/driver/cli_turns.h"

enum { TUNE_PAIRS = 7, TUNE_LEAST_PAIRS = 5 };

/* A problem of the step, with all calls that it has. */
typedef struct TunedKernel {
    const char *problem, *label;
    int64_t calls;
    int variant;          /* 0: the default */
    const char *name;     /* of the variant */
    double before, after; /* seconds a step, medians; of the default alone: the same */
} TunedKernel;

typedef struct TuneResult {
    TunedKernel *kernel;
    int n_kernels;
    int rounds, done;      /* of measuring; fewer done: a signal was caught */
    double before, after;  /* of the step; 0: nothing is faster than the defaults */
    Ratio ratio;           /* before to after */
    bool rejected;         /* kernels were faster, but not the step with all of them */
    const char *processor; /* of the table */
} TuneResult;

/* Whether --device, --march and --no-cache leave anything to tune; false after a message. */
bool tune_possible(Cli *cli);
/* Measures `pairs` pairs of steps a round, and saves. */
ExitCode tune_model(Cli *cli, const Program *p, int64_t pairs, TuneResult *out);
/* --tune: the same unless the table has all kernels of the step. */
ExitCode tune_if_asked(Cli *cli, const Program *p);

#endif
