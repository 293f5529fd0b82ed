/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The files of train --tensorboard: records of TensorFlow (length, checksum, bytes, checksum), each
 * an Event (tensorboard.proto). */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_TENSORBOARD_H
#define SCRIMP_FRONTEND_DRIVER_CLI_TENSORBOARD_H

#include "frontend/driver/cli_log_format.h"

typedef struct EventFile {
    const char *path; /* NULL: none */
    FILE *file;       /* NULL: none, or it cannot be written any more */
    bool lost;        /* rows could not be written */
    double flushed;   /* when, by the clock */
    struct EventRoom *room;
} EventFile;

/* Begins a file in cli->run.tensorboard, which is made where it is missing, behind those that are
 * there; of these, TensorBoard shows nothing from `step` on, the first that this run makes.  False
 * after a message. */
bool events_open(Cli *cli, const LogColumns *columns, int64_t step, EventFile *out);
/* Allocates nothing.  When a row cannot be written, the run goes on without, and says so.  What is
 * written reaches the file every few seconds. */
void events_row(EventFile *e, const LogRow *row);
/* At a save and at an evaluation. */
void events_flush(EventFile *e);
/* False after a message when rows are missing. */
bool events_close(Cli *cli, EventFile *e);

#endif
