/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file of train --log: a JSON object a line. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_LOG_H
#define SCRIMP_FRONTEND_DRIVER_CLI_LOG_H

#include "frontend/driver/cli.h"

#include <stdio.h>

typedef struct TrainLog {
    const char *path; /* as the user gave it; NULL: no log */
    FILE *file;       /* NULL: no log, or it cannot be written any more */
    bool on_disk;     /* a regular file, whose writes do not wait for anybody */
    bool lost;        /* rows could not be written, though there was somebody to read them */
} TrainLog;

/* Opens cli->run.log, if it is set.  Of a run that is continued (--resume) a regular file keeps the
 * rows up to `step`, without that step's evaluation if it is still to be made; rows past it, which
 * the run repeats, and half a line at the end, which a killed run left, are cut.  False after a
 * message: it cannot be written, or it is no log. */
bool train_log_open(Cli *cli, int64_t step, bool evaluation_due, TrainLog *out);

/* After a row: when it could not be written, the run goes on without the log, and says so. */
void train_log_check(TrainLog *log);
/* Before a save: what the log holds of the steps saved must survive a kill. */
void train_log_flush(TrainLog *log);
/* False after a message when rows are missing.  A reader that left misses none. */
bool train_log_close(Cli *cli, TrainLog *log);

#endif
