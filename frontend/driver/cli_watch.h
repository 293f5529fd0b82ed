/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What `train` does when numbers stop being finite (--on-nan): looks after every step, says what
 * was first and where it came from, and takes steps back.  Called by train. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_WATCH_H
#define SCRIMP_FRONTEND_DRIVER_CLI_WATCH_H

#include "frontend/driver/cli_finite.h"
#include "runtime/undo.h"

typedef struct Watch {
    Cli *cli;
    const Session *session;
    const Dataset *data;
    NanPolicy policy;
    Undo *undo;      /* NAN_SKIP */
    int64_t kept;    /* the step of the finite set in --out; -1: none */
    int64_t skipped; /* steps taken back */
    int in_a_row;    /* the last of them */
    bool warned, stopped;
} Watch;

/* With weights in place.  False, after a message, when they are not finite (unless such a run is to
 * go on), or when there is no memory for the copy that taking steps back needs. */
bool watch_open(Watch *w, Cli *cli, const Session *session, const Dataset *data, Threads *threads);
void watch_close(Watch *w);
/* Looks at what a step left, and takes it back where that is wanted.  NULL: all is well; else what
 * was seen, for watch_goes_on or watch_stop. */
const char *watch_step(Watch *w);
/* True after a warning: the run goes on.  False: it has to stop.  `step` is the one that was run,
 * counted from 1.  Lets go of what the step computed, but for persistent tensors. */
bool watch_goes_on(Watch *w, const char *seen, int64_t step);
/* The error that ends the run; `aside` is where its state went, or NULL. */
void watch_stop(Watch *w, const char *seen, int64_t step, const char *aside);

#endif
