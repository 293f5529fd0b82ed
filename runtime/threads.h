/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The thread pool that generated steps run on: made once, n threads of which the caller is thread
 * 0, a static partition of every region, the same bits for any n.  Called by the trainer; the step
 * reaches it through ScrimpContext.run (runtime/abi.h). */
#ifndef SCRIMP_RUNTIME_THREADS_H
#define SCRIMP_RUNTIME_THREADS_H

#include "runtime/abi.h"
#include "runtime/status.h"

typedef struct Threads Threads;

/* From when to when something ran, in seconds of the monotonic clock; end 0: it did not. */
typedef struct RtSpan {
    double begin, end;
} RtSpan;

/* Seconds spent in each call of a step, added up over all steps that ran with it.  The arrays are
 * the caller's: n entries each, seconds[call] and count[call] are added to.  busy, unless NULL: a
 * row of n for every thread, to which the seconds of its share of each call are added. */
typedef struct RtProfile {
    int32_t n;
    double *seconds;
    int64_t *count;
    double *busy;
    /* Unless NULL, and only with busy: when each of n_runs calls ran, in their order; those of a
     * loop run many times.  A row of n_runs for every thread, with its share, and behind them one
     * with the calls as a whole; run_call: which call it was.  runs: of how many that is known
     * already; the caller's to set back to 0. */
    RtSpan *span;
    int32_t *run_call;
    int64_t n_runs, runs;
} RtProfile;

/* n threads in all (n - 1 are started); 0 = cores_allowed() (runtime/cores.h).  Every thread gets
 * SCRIMP_SCRATCH_BYTES of its own, touched. */
Threads *threads_new(int n, RtError *err);
/* Stops and joins; NULL is allowed.  Only by the thread that calls threads_run. */
void threads_free(Threads *threads);
int threads_count(const Threads *threads);
/* From the next region on kernels compute with denormal numbers, which they else take for zeros and
 * make zeros of (runtime/denormals.h). */
void threads_keep_denormals(Threads *threads);

/* Runs kernel over tasks [0, n_tasks): thread t of T does [t*n/T, (t+1)*n/T).  Returns when all are
 * done; everything the tasks wrote is then visible to the caller.  Not reentrant, one caller. */
void threads_run(Threads *threads, ScrimpKernel *kernel, char *const *buf, int64_t n_tasks);
/* A context for a step: ctx->run, threads and profile (NULL: do not measure) are set. */
ScrimpContext threads_context(Threads *threads, char *arena, RtProfile *profile);

#endif
