/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs the kernels of a graph on buffers of exactly the right size, for tests of lowering rules: no
 * plan, no arena. Code is generated in a child process, as in scrimp itself. */
#ifndef SCRIMP_TESTS_RUN_KERNELS_H
#define SCRIMP_TESTS_RUN_KERNELS_H

#include "codegen/build/kernel.h"
#include "runtime/abi.h"

typedef struct KernelRun {
    Pool *pool;
    const Graph *graph;
    Lowering lowering;
    void *handle;
    ScrimpKernel **kernel; /* by call */
    char **data;           /* by value; of what lies in another, that one's */
    char **workspace;      /* by node */
    char *scratch;
} KernelRun;

bool run_compile(KernelRun *r);
void run_link(KernelRun *r);
/* NULL after a failed CHECK. */
KernelRun *run_new(Pool *pool, const Graph *g, const Target *target);
void run_buffers(const KernelRun *r, const Call *c, char **buf);
/* Every kernel in one go, for timings. */
void run_once(const KernelRun *r);
/* Tasks `group` at a time, the last group first when `backward`. */
void run_all(const KernelRun *r, int64_t group, bool backward);
void run_free(KernelRun *r);

#endif
