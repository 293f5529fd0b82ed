/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Schedules that solvers begin with, and schedules as problems. */
#ifndef SCRIMP_PASSES_REMAT_MODEL_SCHEDULE_H
#define SCRIMP_PASSES_REMAT_MODEL_SCHEDULE_H

#include "passes/remat/model/problem.h"

/* Which outputs of a run take the place of which inputs: of node->in_place the first legal pairs in
 * order.  dies: by input position, the value dies with this run.  Fills in_merged, by input
 * position, and out_merged, by output position. */
void remat_merge_in_place(const RematProblem *p, const RematNode *node, const bool *dies,
                          bool *in_merged, bool *out_merged);

/* Every node once, in the base order. */
RematSchedule remat_base_schedule(Pool *pool, const RematProblem *p);
RematSchedule remat_schedule_copy(Pool *pool, const RematSchedule *s);

/* By node: a value that it made before the loss is read after it. */
bool *remat_crossing(Pool *pool, const RematProblem *p, const RematSchedule *s);
/* No second run of @keep, nothing of @recompute made before the loss and read after it. */
bool remat_obeys_hints(Pool *scratch, const RematProblem *p, const RematSchedule *s);

/* The schedule as a problem of its own: every run a node, every run's outputs tensors.  Nodes are
 * in the order of the schedule; node k of the result is run k.  The schedule must be one that
 * remat_check accepts. */
RematProblem *remat_expand(Pool *pool, const RematProblem *p, const RematSchedule *s);

#endif
