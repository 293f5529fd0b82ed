/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The memory of a step, played operation by operation with a list of what is in memory: no lives,
 * no code of the planner's. */
#ifndef SCRIMP_TESTS_SUPPORT_SIMULATED_PEAK_H
#define SCRIMP_TESTS_SUPPORT_SIMULATED_PEAK_H

#include "ir/graph.h"

typedef struct Simulated {
    int64_t peak_bytes; /* persistent tensors included */
    int peak_slot;      /* the first */
    int *freed;         /* by value that is nobody's view or part: slot behind the last in which it
                           is in memory; -1: it never is */
} Simulated;

Simulated simulate_step(Pool *pool, const Graph *g);

#endif
