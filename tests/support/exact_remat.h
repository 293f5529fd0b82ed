/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Exact search over all schedules of a small problem, for tests: any order, any number of
 * recomputations.  Dijkstra's algorithm over states (nodes that have run, tensors in memory); a
 * step runs one node and then frees some of its inputs and outputs, which are the only moments at
 * which a value dies. */
#ifndef SCRIMP_TESTS_SUPPORT_EXACT_REMAT_H
#define SCRIMP_TESTS_SUPPORT_EXACT_REMAT_H

#include "passes/remat/model/problem.h"

/* The least time of all schedules within the budget, or (on_peak) the least peak; -1 = none.  For
 * at most 31 nodes and tensors, costs that are whole numbers, and persistent tensors that no node
 * makes.  @keep forbids second runs. */
int64_t exact_remat(Pool *pool, const RematProblem *p, int64_t budget, bool on_peak,
                    RematSchedule *best);

#endif
