/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rows of a training run, and the formats that its log can have.  Called by cli_log.c. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_LOG_FORMAT_H
#define SCRIMP_FRONTEND_DRIVER_CLI_LOG_FORMAT_H

#include "frontend/driver/cli.h"

#include <stdio.h>

/* A number of a step or of an evaluation. */
typedef struct Scalar {
    const char *name;
    double value;
} Scalar;

/* What is said of a step, or of an evaluation after it. */
typedef struct LogRow {
    int64_t step;
    bool evaluation;
    bool skipped; /* the step was taken back */
    const Scalar *scalar;
    int n;
    const struct Metric *table; /* of an evaluation; JSON has them, as val_NAME */
    int n_tables;
} LogRow;

/* The names that a run's rows have; the values say nothing. */
typedef struct LogColumns {
    const Scalar *step, *evaluation;
    int n_step, n_evaluation; /* 0: nothing is evaluated */
    bool skips;               /* steps may be taken back */
} LogColumns;

/* What is read of a row. */
typedef struct LogPlace {
    int64_t step;
    bool evaluation;
} LogPlace;

typedef struct LogFormat {
    /* The first line of the file, with its end; "" where it has none. */
    const char *(*header)(Pool *pool, const LogColumns *columns);
    void (*put)(FILE *f, const LogColumns *columns, const LogRow *row);
    /* Whether a whole line is a row. */
    bool (*read)(const char *line, size_t length, LogPlace *out);
    /* Whether a line without an end is the beginning of a row. */
    bool (*begins)(const char *line, size_t length);
} LogFormat;

/* By the ending of the file's name. */
const LogFormat *log_format_of(const char *path);

#endif
