/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Independent tasks of the compiler on a few threads, started and joined for each call: a task
 * takes milliseconds at least.  (Generated steps have a pool of their own, runtime/threads.h.)
 * Used by the scrimp solver and by codegen's workers. */
#ifndef SCRIMP_IR_SUPPORT_PARALLEL_H
#define SCRIMP_IR_SUPPORT_PARALLEL_H

#include "ir/support/pool.h"

/* How many tasks at once are worth it: what parallel_set_cores said, else the number of cores in
 * the affinity mask. */
int parallel_cores(void);
/* n > 0, before any other thread runs: the program knows of more limits (quotas). */
void parallel_set_cores(int n);

/* Task number `task`; all that it allocates comes from its own pool. */
typedef void ParallelTask(void *user, int task, Pool *pool);

/* Runs tasks [0, n_tasks) on up to n_threads threads, of which the caller is one; 0 =
 * parallel_cores().  Tasks begin in their order, whichever thread is free takes the next; when no
 * thread can be started, the caller does them all.  Each has a pool, a child of `pool`, which stays
 * until that is freed.  Out of memory in a task is out of memory in `pool`, once all have ended:
 * tasks must leave nothing behind but their pools.  What tasks wrote is visible to the caller
 * then. */
void parallel_run(Pool *pool, int n_threads, int n_tasks, ParallelTask *task, void *user);

#endif
