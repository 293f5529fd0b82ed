/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file of train --log: a JSON object a line, or, where its name ends in .csv, comma-separated
 * values (RFC 4180, with lines that end as they do here). */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_LOG_H
#define SCRIMP_FRONTEND_DRIVER_CLI_LOG_H

#include "frontend/driver/cli_log_format.h"

typedef struct TrainLog {
    const char *path; /* as the user gave it; NULL: no log */
    FILE *file;       /* NULL: no log, or it cannot be written any more */
    const LogFormat *format;
    LogColumns columns;
    bool on_disk; /* a regular file, whose writes do not wait for anybody */
    bool lost;    /* rows could not be written, though there was somebody to read them */
} TrainLog;

/* Opens cli->run.log, if it is set.  Of a run that is continued (--resume) a regular file keeps the
 * rows up to `step`, without that step's evaluation if it is still to be made; rows past it, which
 * the run repeats, and half a line at the end, which a killed run left, are cut.  False after a
 * message: it cannot be written, it is no log, or its columns are another run's. */
bool train_log_open(Cli *cli, const LogColumns *columns, int64_t step, bool evaluation_due,
                    TrainLog *out);

/* Allocates nothing.  When a row cannot be written, the run goes on without the log, and says so.
 */
void train_log_row(TrainLog *log, const LogRow *row);
/* Before a save: what the log holds of the steps saved must survive a kill. */
void train_log_flush(TrainLog *log);
/* False after a message when rows are missing.  A reader that left misses none. */
bool train_log_close(Cli *cli, TrainLog *log);

#endif
