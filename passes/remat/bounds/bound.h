/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Proven lower bounds: no schedule that remat_check accepts has less peak, or takes less time
 * within a budget, whatever its order and however often it runs a node again.  docs/remat.md has
 * the proofs.  Deterministic where `until`, in
 * seconds of the monotonic clock, is 0 = no limit or not reached; a search that stops early has a
 * smaller bound, never a wrong one. */
#ifndef SCRIMP_PASSES_REMAT_BOUNDS_BOUND_H
#define SCRIMP_PASSES_REMAT_BOUNDS_BOUND_H

#include "passes/remat/model/problem.h"

/* The time that every schedule with a peak of at most budget_bytes takes beyond time_once, in the
 * unit of the costs; INFINITY when no schedule has such a peak (not finding that proof proves
 * nothing).  node_at, if not NULL: the operation whose first run forces it, -1 = none.  One minimum
 * cut (O(nodes + edges) in practice) per price of memory and operation looked at. */
double remat_overhead_lower_bound(const RematProblem *p, int64_t budget_bytes, Pool *scratch,
                                  double until, int *node_at);

/* What forces a bound on the peak. */
typedef struct RematPeakBound {
    int64_t bytes;
    int node;      /* at this operation; -1: a problem without operations */
    int *tensor;   /* non-persistent tensors that are in memory then, the largest first */
    int n_tensors; /* (outputs that may be written over an input left out) */
} RematPeakBound;

/* The least peak of all schedules that take at most extra_time beyond time_once: INFINITY: of all
 * schedules; 0: of all orders without recomputation.  The tensors are allocated on pool. */
RematPeakBound remat_peak_bound_under_time(Pool *pool, const RematProblem *p, double extra_time,
                                           double until);

/* remat_peak_bound_under_time with INFINITY. */
int64_t remat_peak_lower_bound(const RematProblem *p, Pool *scratch, double until, int *node_at);

#endif
