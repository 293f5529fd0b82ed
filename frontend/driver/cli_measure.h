/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Real steps on random data, with the time of every kernel: for `bench` and measured costs. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_MEASURE_H
#define SCRIMP_FRONTEND_DRIVER_CLI_MEASURE_H

#include "frontend/driver/cli_session.h"

/* Of all steps: the median, and what the middle half of them lies between. */
typedef struct Spread {
    double median, low, high;
} Spread;

/* What is measured beside the seconds of steps and calls, by four readings of the clock a call
 * where there are two without. */
typedef enum StepDetail {
    DETAIL_NONE,
    DETAIL_WAITING, /* how long threads wait */
    DETAIL_SPANS    /* and what each of them did when */
} StepDetail;

/* n steps and their calls of kernels, in the order in which they ran. */
typedef struct StepTimes {
    int64_t n;
    int n_calls;
    double *step; /* seconds of step i */
    double *call; /* seconds of call k of step i: call[i * n_calls + k] */
    /* In the same order: seconds of the call in which a thread has no share of it, mean of all
     * threads.  NULL: not asked for, or a device. */
    double *waiting;
    /* Only with DETAIL_SPANS.  By the clock: step i, and what each row did of the r-th of n_runs
     * kernels that it runs, which is of call run_call[r]: span[(i * n_rows + row) * n_runs + r].  A
     * row is a thread, the last one the kernels as a whole.  A device has that one only, and of the
     * calls of a loop their last run; its steps are those that are launched call by call. */
    RtSpan *whole, *span;
    int64_t n_runs;
    int32_t *run_call;
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

/* How many kernels run in a step of which DETAIL_SPANS has spans. */
int64_t measurement_runs(const Measurement *m);
/* Row `row` of the spans of step i. */
const RtSpan *measurement_spans(const StepTimes *t, int64_t i, int row);
/* Makes room for n steps, and runs two to warm up. */
bool measurement_begin(Measurement *m, int64_t n, StepDetail detail);
/* Runs step i of them.  It is measured together with its calls: what a step takes beyond them is
 * spent between them. */
bool measurement_step(Measurement *m, int64_t i);
/* Both, for all steps. */
bool measurement_run(Measurement *m, int64_t n, StepDetail detail);
/* Both sort what they are given. */
void measurement_sort(double *seconds, int64_t n);
Spread measurement_spread(double *seconds, int64_t n);
/* By call: the median of n steps, in seconds. */
double *measurement_medians(Measurement *m, int64_t n);

#endif
