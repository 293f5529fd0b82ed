/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Progress on standard error, for verbs that search for a long time. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_PROGRESS_H
#define SCRIMP_FRONTEND_DRIVER_CLI_PROGRESS_H

#include "frontend/driver/cli.h"

typedef struct Progress {
    double next_line; /* not before this time, by clock_seconds */
    bool drawn;       /* a terminal has a line that is redrawn */
} Progress;

/* Nothing but a terminal gets a line in the first `seconds`. */
Progress progress_begin(double seconds);
/* A terminal gets one line that is redrawn, other readers a line every ten seconds at most.
 * --quiet: nothing. */
void progress_show(const Cli *cli, Progress *p, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Before other output, and at the end: clears a terminal's line. */
void progress_clear(Progress *p);

#endif
