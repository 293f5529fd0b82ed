/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Real steps on random data, with the time of every kernel: for `bench` and measured costs. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_MEASURE_H
#define SCRIMP_FRONTEND_DRIVER_CLI_MEASURE_H

#include "frontend/driver/cli_session.h"

/* n steps and their calls of kernels, in the order in which they ran. */
typedef struct StepTimes {
    int64_t n;
    int n_calls;
    double *step; /* seconds of step i */
    double *call; /* seconds of call k of step i: call[i * n_calls + k] */
    /* Only where spans are asked for.  By the clock: step i, and what each row did of call k of it:
     * span[(i * n_rows + row) * n_calls + k].  A row is a thread, the last one the calls as a
     * whole.  A device has that one only; its steps are those that are launched call by call. */
    RtSpan *whole, *span;
    int n_rows;
} StepTimes;

typedef struct Measurement {
    RunningSession running;
    RtProfile profile;
    Dataset *data;
    StepTimes times;
    int64_t steps; /* that ran, those that warm up included */
} Measurement;

/* Compiles, maps memory, starts threads and fills everything; false after a message. */
bool measurement_open(Cli *cli, const Program *program, Measurement *out);
void measurement_close(Measurement *m);

/* Makes room for n steps, and runs two to warm up. */
bool measurement_begin(Measurement *m, int64_t n, bool spans);
/* Runs step i of them.  It is measured together with its calls: what a step takes beyond them is
 * spent between them. */
bool measurement_step(Measurement *m, int64_t i);
/* Both, for all steps. */
bool measurement_run(Measurement *m, int64_t n, bool spans);
/* Sorts the seconds of n steps. */
void measurement_sort(double *seconds, int64_t n);
/* By call: the median of n steps, in seconds. */
double *measurement_medians(Measurement *m, int64_t n);

#endif
