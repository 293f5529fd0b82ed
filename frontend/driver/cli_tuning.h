/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of tuned kernels (codegen/build/tuning.h), kept in the kernel cache for this processor,
 * target, number of threads and code generator. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_TUNING_H
#define SCRIMP_FRONTEND_DRIVER_CLI_TUNING_H

#include "codegen/build/cache.h"
#include "codegen/build/tuning.h"
#include "frontend/driver/cli.h"

typedef struct TuningTable {
    Pool *pool;
    Cache cache;
    const char *machine, *target, *key;
    int threads;
    Tuning tuning;
    const char *fault; /* why a table that is there cannot be used, else NULL */
} TuningTable;

/* Reads the table; without one it is empty.  write: it is to be saved, so the cache is made.  False
 * and *error where the cache cannot be used. */
bool tuning_open(Cli *cli, bool write, TuningTable *out, const char **error);
/* Adds choices (problem -> variant) to what the cache holds by now. */
bool tuning_save(Cli *cli, const Map *chosen, TuningTable *out, const char **error);

/* What the verb's kernels are compiled with; NULL: the defaults, as with --no-tuning, --march, on a
 * device, and for verbs without these options.  Read once. */
const Tuning *cli_tuning(Cli *cli);

#endif
