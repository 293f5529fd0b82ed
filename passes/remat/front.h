/* The best schedules seen, for every budget: sets of recomputations (slots.h) of which none needs
 * both more memory and more time than another.  Because what is in it does not depend on any
 * budget, time never grows with the budget that is asked for.  Used by the scrimp solver. */
#ifndef SCRIMP_PASSES_REMAT_FRONT_H
#define SCRIMP_PASSES_REMAT_FRONT_H

#include "passes/remat/slots.h"

#include "ir/support/vec.h"

typedef struct FrontPoint {
    int64_t peak_bytes;
    double time;
    int n;
    int *pair; /* [2 * n]: node, slot; ascending by slot, then node */
} FrontPoint;

typedef struct Front {
    Pool *pool;
    VEC(FrontPoint) points; /* peak rises, time falls */
} Front;

/* Adds what `s` is now, when it is better than every point. */
void front_offer(Front *f, Slots *s);
/* The point with the least time whose peak is within the budget; NULL when there is none. */
const FrontPoint *front_within(const Front *f, int64_t budget_bytes);
/* The point with the smallest peak above the budget; NULL when there is none. */
const FrontPoint *front_above(const Front *f, int64_t budget_bytes);
/* Makes `s` the schedule of a point. */
void front_load(const FrontPoint *point, Slots *s);

#endif
