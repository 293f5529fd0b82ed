/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Real steps on random data, with the time of every kernel: for `bench` and measured costs. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_MEASURE_H
#define SCRIMP_FRONTEND_DRIVER_CLI_MEASURE_H

#include "frontend/driver/cli_session.h"

typedef struct Measurement {
    RunningSession running;
    RtProfile profile;
    Dataset *data;
} Measurement;

/* Compiles, maps memory, starts threads and fills everything; false after a message. */
bool measurement_open(Cli *cli, const Program *program, Measurement *out);
void measurement_close(Measurement *m);

/* n steps and their calls of kernels, in the order in which they ran. */
typedef struct StepTimes {
    int64_t n;
    int n_calls;
    double *step; /* seconds of step i */
    double *call; /* seconds of call k of step i: call[i * n_calls + k] */
} StepTimes;

/* Sorts the seconds of n steps. */
void measurement_sort(double *seconds, int64_t n);
/* Runs n steps after two to warm up.  Each is measured together with its calls: what a step takes
 * beyond them is spent between them. */
bool measurement_run(Measurement *m, int64_t n, StepTimes *out);
/* By call: the median of n steps, in seconds. */
double *measurement_medians(Measurement *m, int64_t n);

#endif
