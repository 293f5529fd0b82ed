/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From a list of runs, as solvers of the whole step emit them, to a schedule. */
#ifndef SCRIMP_PASSES_REMAT_MODEL_RUNS_H
#define SCRIMP_PASSES_REMAT_MODEL_RUNS_H

#include "passes/remat/model/csr.h"
#include "passes/remat/model/problem.h"

/* Late nodes overwrite something, or depend on a node that does: updates, and what reads their
 * results.  They run once, and no solver chooses when. */
bool *update_nodes(Pool *pool, const RematProblem *p);

/* Runs so far, of nodes that are not late, and which tensors a node that reads them has to have
 * made again: what has been dropped, or not made yet, as the caller says. */
typedef struct RunList {
    const RematProblem *p;
    Pool *pool;
    VEC(int) runs;
    bool *gone;      /* by tensor */
    VEC(int) wanted; /* scratch: nodes to run again */
    bool *is_wanted;
} RunList;

/* Empty, and nothing is gone. */
RunList run_list_new(Pool *pool, const RematProblem *p);
/* Runs node, after those that make what it needs and is gone, ancestors included, in base order. */
void run_list_add(RunList *l, int node);

/* May run a second time: not late, no @keep, not forbidden. */
bool is_repeatable(const RematProblem *p, const bool *late, int node);

/* Puts every late node into a list of runs of all others: after runs[floor[n]] (-1: anywhere; floor
 * NULL: anywhere), after its inputs' first runs, and after the last read of what it overwrites; no
 * later than that.  The list must hold every node that is not late. */
RematSchedule merge_late(Pool *pool, const RematProblem *p, const bool *late, const int *runs,
                         int n_runs, const int *floor);

/* Any list of nodes becomes a schedule that remat_check accepts: late nodes are put in as above;
 * runs past the first of nodes that may not be repeated are dropped; what a run needs and nothing
 * has made yet runs before it; nodes that are missing run at the end; runs that nothing reads, of
 * nodes that run elsewhere, are dropped.  O(runs + reads). */
RematSchedule schedule_from_runs(Pool *pool, const RematProblem *p, const bool *late,
                                 const int *runs, int n_runs);

#endif
