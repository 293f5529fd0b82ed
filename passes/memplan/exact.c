/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The least height by branch and bound: asks for layouts within a limit, with restarts in several
 * orders, shuffled a little, and growing effort, and moves the limit between what is proven
 * impossible and what is known (P5).  Effort is counted in steps. */
#include "passes/memplan/place_internal.h"

#include <string.h>

/* Steps of a restart: enough for some dives to the bottom; doubled after so many restarts. */
enum { N_ORDERS = 4, STEPS_A_BUFFER = 1000, RESTARTS = 32 };
static const char *const orders[N_ORDERS] = {"TZW", "TWA", "AWT", "WZT"};

typedef struct Exact {
    const PlaceProblem *p;
    int *order;
    int64_t *trial;
    int64_t steps_left;
} Exact;

/* Restarts until one of them knows, or `steps` are done. */
static PlaceOutcome ask(Exact *e, int64_t limit, int64_t steps)
{
    int64_t effort = STEPS_A_BUFFER * (int64_t)e->p->n;
    for (int k = 0; steps > 0; k++) {
        PlaceWork work = {0, effort < steps ? effort : steps};
        place_order(e->p, orders[k % N_ORDERS], e->order);
        if (k >= N_ORDERS)
            place_shuffle(e->order, e->p->n, (uint64_t)k);
        PlaceOutcome outcome = place_branch_bound(e->p, e->order, limit, e->trial, &work);
        steps -= work.done + e->p->n;
        e->steps_left -= work.done + e->p->n;
        if (outcome != PLACE_UNKNOWN)
            return outcome;
        if (k % RESTARTS == RESTARTS - 1)
            effort *= 2;
    }
    return PLACE_UNKNOWN;
}

void place_exact(const PlaceProblem *p, int64_t *offset, int64_t *height, int64_t *lower,
                 int64_t steps)
{
    Pool *pool = pool_new_child(p->scratch);
    Exact e = {p, POOL_ARRAY(pool, (size_t)p->n, int), POOL_ARRAY(pool, (size_t)p->n, int64_t),
               steps};
    int64_t unit = place_unit(p), limit = *lower;
    while (*height > *lower && limit < *height && e.steps_left > 0) {
        PlaceOutcome outcome = ask(&e, limit, e.steps_left / 2 + 1);
        if (outcome == PLACE_FOUND) {
            *height = place_height(p, e.trial);
            memcpy(offset, e.trial, (size_t)p->n * sizeof *offset);
        } else if (outcome == PLACE_IMPOSSIBLE) {
            *lower = limit = (limit / unit + 1) * unit;
        } else { /* something easier: half way to what is known */
            limit = (limit + (*height - limit) / 2) / unit * unit + unit;
        }
    }
    pool_free(pool);
}
