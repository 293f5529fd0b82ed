/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From a step of the IR to a problem, and from a schedule back to the step: the only places of
 * remat that see a graph. */
#ifndef SCRIMP_PASSES_REMAT_MODEL_STEP_PROBLEM_H
#define SCRIMP_PASSES_REMAT_MODEL_STEP_PROBLEM_H

#include "passes/remat/model/cost.h"
#include "passes/remat/model/problem.h"

/* The problem of a step graph under a cost model (NULL: the default), and the way back. */
typedef struct RematMapping {
    NodeId *node_of;   /* problem node -> graph node */
    ValueId *value_of; /* problem tensor -> the graph value that owns the storage */
} RematMapping;
RematProblem *remat_problem_from_graph(Pool *pool, const Graph *g, const NodeCosts *costs,
                                       RematMapping *mapping);
/* Rebuilds g's order from the schedule: repeated nodes become clones ("X~1", remat_of, remat_by),
 * readers take the latest run, views follow their storage. */
void remat_apply(Graph *g, const RematProblem *p, const RematMapping *mapping,
                 const RematSchedule *s, const char *solver_name);

#endif
