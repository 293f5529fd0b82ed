/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The best schedules seen, for every budget: of no two does one need both more memory and more time
 * than the other.  Because what is in it does not depend on any budget, time never grows with the
 * budget that is asked for.  Used by the scrimp solver. */
#ifndef SCRIMP_PASSES_REMAT_MODEL_PARETO_FRONT_H
#define SCRIMP_PASSES_REMAT_MODEL_PARETO_FRONT_H

#include "passes/remat/model/problem.h"

#include "ir/support/vec.h"

typedef struct ParetoPoint {
    int64_t peak_bytes; /* remat_check's */
    double time;
    RematSchedule schedule; /* in any order */
    Pool *pool;             /* holds it; freed when a better one takes its place */
} ParetoPoint;

typedef struct ParetoFront {
    Pool *pool;
    VEC(ParetoPoint) points; /* peak rises, time falls */
} ParetoFront;

/* Whether a schedule with these figures would be better than every point.  O(log n). */
bool pareto_takes(const ParetoFront *f, int64_t peak_bytes, double time);
/* Adds a copy of the schedule when it is better than every point; whether it was. */
bool pareto_offer(ParetoFront *f, int64_t peak_bytes, double time, const RematSchedule *s);
/* Offers it all that another front has, the smallest peak first. */
void pareto_merge(ParetoFront *f, const ParetoFront *other);
/* The point with the least time whose peak is within the budget; NULL when there is none. */
const ParetoPoint *pareto_within(const ParetoFront *f, int64_t budget_bytes);
/* The point with the smallest peak above the budget; NULL when there is none. */
const ParetoPoint *pareto_above(const ParetoFront *f, int64_t budget_bytes);

#endif
