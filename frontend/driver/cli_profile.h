/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a step takes, kernel by kernel, operation by operation and thread by thread: for `bench` and
 * `report --measure`. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_PROFILE_H
#define SCRIMP_FRONTEND_DRIVER_CLI_PROFILE_H

#include "frontend/driver/cli_measure.h"

/* Unless the user says how many. */
enum { PROFILE_STEPS = 9 };

/* Calls of one label together. */
typedef struct KernelRow {
    const char *name;
    int64_t calls; /* a step */
    Spread time;
    double waiting;      /* of these seconds, a thread has no work in; mean of all threads */
    double flops, bytes; /* of all calls */
    const char *where;   /* in the model, with lines, for people: "h.*.attn:16" */
    const char *path;    /* the same without lines; "": of no part */
    uint32_t line;       /* of the first call that has one; 0: none */
} KernelRow;

/* What a thread (or a device) did of a call of kernel row `kernel`: seconds since the step began.
 */
typedef struct ThreadEvent {
    double start, seconds;
    int kernel;
} ThreadEvent;

typedef struct ThreadTrack {
    const char *name; /* "main", "worker 1", or the device's */
    int n;
    const ThreadEvent *event; /* in the order of time */
} ThreadTrack;

/* Medians do not add up where steps are disturbed in different places: rest_seconds says by how
 * much. */
typedef struct StepProfile {
    int64_t steps;
    Spread step, outside; /* outside: between the kernels; of a device, nothing that is measured */
    double rest_seconds;  /* the median step less all other medians */
    double waiting;       /* as in rows, of all kernels together; < 0: not measured (a device) */
    double flops, bytes;  /* of a step */
    KernelRow *kernel;    /* the slowest first */
    int n_kernels;
    const int *kernel_of_call;
    double *node_seconds;          /* by NodeId: the median of all its calls together */
    double peak_gflops;            /* of all threads, measured; 0: not known, as of a device */
    double peak_gbytes_per_second; /* the same, from and to memory */
    ThreadTrack *track;            /* of the step with the median time; NULL without spans */
    int n_tracks;
} StepProfile;

/* amount/seconds in units of 1e9; 0 for no time. */
double profile_rate(double amount, double seconds);
/* The statistics of a measurement that ran its steps, all on the pool of its Cli. */
void profile_add_up(const Measurement *m, StepProfile *out);
json_t *profile_kernels_json(const StepProfile *p);
/* Fills the peaks in; false after a message. */
bool profile_peaks(const Measurement *m, StepProfile *out);
/* All of it, for a program that is not running: steps, with spans where they are not too many, and
 * peaks.  False after a message. */
bool profile_measure(Cli *cli, const Program *program, int64_t steps, StepProfile *out);
/* What thread 0, 1, ... of a measurement is called. */
const char *profile_track_name(const Measurement *m, int thread);

#endif
