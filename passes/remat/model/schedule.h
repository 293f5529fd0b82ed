/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Schedules that solvers begin with, and schedules as problems. */
#ifndef SCRIMP_PASSES_REMAT_MODEL_SCHEDULE_H
#define SCRIMP_PASSES_REMAT_MODEL_SCHEDULE_H

#include "passes/remat/model/problem.h"

/* Every node once, in the base order. */
RematSchedule remat_base_schedule(Pool *pool, const RematProblem *p);

/* No second run of @keep, nothing of @recompute made before the loss and read after it. */
bool remat_obeys_hints(Pool *scratch, const RematProblem *p, const RematSchedule *s);

/* The schedule as a problem of its own: every run a node, every run's outputs tensors.  Nodes are
 * in the order of the schedule; node k of the result is run k.  The schedule must be one that
 * remat_check accepts. */
RematProblem *remat_expand(Pool *pool, const RematProblem *p, const RematSchedule *s);

#endif
