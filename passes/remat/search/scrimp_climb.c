/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One search of the scrimp solver: a ladder of targets between keeping everything and the lower
 * bound.  From the highest down and then in all orders, it
 *  1. drops values greedily by time a byte (greedy_drop.c): from the nearest schedule that is too
 *     large, and from keeping everything with prices bent in several ways,
 *  2. takes back what is not needed (greedy_restore.c),
 *  3. looks for an order of the runs with a smaller peak, which becomes the base order, and
 *     improves the best schedule by large-neighbourhood search (scrimp_improve.c): recomputations
 *     of a stretch are taken out, the greedy repairs with random prices, what is not slower stays.
 * Then the same search goes on from the smallest schedule, and what is smaller stays.
 * Work is counted in updates and queries of the memory profile, never by the clock. */
#include "passes/remat/search/lns.h"

#include <math.h>

enum { LEVELS = 64, STARTS = 4, PASSES = 3, SMALLEST = 8, FINE_LEVELS = 512 };
/* Parts of the work after which the descent ends, no more starts are made, and the smallest
 * schedule is left as it is for now; and in the end. */
static const double DESCENT_PART = 0.3, STARTS_PART = 0.35, SMALLEST_PART = 0.45, OVERTIME = 1.1,
                    FILLED_PART = 1.2;
/* What shrinking the smallest schedule takes beside that, at most.  It comes behind the passes
 * over the targets, so that these are what they are without it. */
static const double SHRINK_PART = 0.6;
/* Exponent of the levels: denser where they are low, because there a byte costs most time. */
static const double DENSER = 1.25;

/* ---- one target ---- */

/* From the nearest schedules that are too large: of all, and of our own, because another solver's
 * may be near and yet of little use. */
static void repair_larger(LargeNeighbourhoodSearch *l)
{
    const ParetoFront *fronts[] = {l->front, &l->own};
    double last = 0;
    for (int k = 0; k < 2; k++) {
        const ParetoPoint *above = pareto_above(fronts[k], l->target_bytes);
        if (!above || fabs(above->time - last) <= 1e-12 * last) /* sums in another order */
            continue;
        last = above->time;
        lns_load(l, &above->schedule);
        lns_repair(l);
    }
}

static void start_level(LargeNeighbourhoodSearch *l)
{
    static const double reach[STARTS] = {0, 0.5, 1, 0}, noise[STARTS] = {0, 0, 0, 0.4};
    if (!pareto_above(l->front, l->target_bytes))
        return;
    repair_larger(l);
    for (int start = 0; start < STARTS; start++) {
        const ParetoPoint *all = &l->front->points.data[l->front->points.len - 1];
        GreedySearch *x = lns_load(l, &all->schedule);
        x->reach = reach[start];
        x->noise = noise[start];
        x->draw = greedy_random(x);
        x->by_kind = start == STARTS - 1;
        lns_repair(l);
    }
}

/* From large targets to small ones, so that what was gained at one goes on to the next. */
static void improve_level(LargeNeighbourhoodSearch *l, double work)
{
    double until = (double)lns_work(l) + work;
    repair_larger(l);
    const ParetoPoint *best = pareto_within(l->front, l->target_bytes);
    if (!best)
        return;
    if (lns_reorder(l))
        best = pareto_within(l->front, l->target_bytes);
    lns_load(l, &best->schedule);
    if (lns_repair(l))
        lns_improve(l, until - (double)lns_work(l));
}

/* ---- all targets ---- */

/* Level k of LEVELS, the highest first. */
static int64_t target_of(const LargeNeighbourhoodSearch *l, double k, double exponent)
{
    return l->low + (int64_t)((double)(l->high - l->low) * pow(1 - (k + 1) / LEVELS, exponent));
}

/* In the order of a binary subdivision: wherever the work ends, what has been done is spread
 * evenly. */
static int spread(int k)
{
    int reversed = 0;
    for (int bit = 1; bit < LEVELS; bit *= 2)
        reversed = 2 * reversed + ((k & bit) != 0);
    return reversed;
}

/* The smallest schedule, in other orders and improved, as long as that makes it smaller. */
static void deepen(LargeNeighbourhoodSearch *l, double work, double part)
{
    for (int k = 0; k < SMALLEST && !lns_out_of_work(l, part); k++) {
        int64_t before = l->target_bytes = l->front->points.data[0].peak_bytes;
        l->in_vain = 0;
        l->reordered_bytes = 0;
        if (before > l->low)
            improve_level(l, work);
        if (l->front->points.data[0].peak_bytes == before)
            break;
    }
}

/* The smallest schedule, towards a smaller peak: `deepen` ends where neither another order nor
 * dearer or cheaper recomputations at the same peak lead further.  It does not count as work, so
 * that what follows has as much as without it. */
static void shrink(LargeNeighbourhoodSearch *l, double part)
{
    int64_t before = lns_work(l);
    if (l->front->points.data[0].peak_bytes > l->low && !remat_out_of_time(l->options))
        lns_shrink(l, part * l->work);
    l->done -= lns_work(l) - before;
}

/* From the highest target to the lowest that is reached, each from the one above: hardly more work
 * than reaching the lowest from keeping everything.  Where work is short, as it is for thousands of
 * nodes, this comes first. */
static void descend(LargeNeighbourhoodSearch *l)
{
    for (int k = 0; k < LEVELS && !lns_out_of_work(l, DESCENT_PART); k++) {
        l->target_bytes = target_of(l, k, 1);
        repair_larger(l);
        if (!pareto_within(l->front, l->target_bytes))
            break;
    }
}

static void start_levels(LargeNeighbourhoodSearch *l)
{
    int64_t too_low = 0; /* the highest target that was not reached */
    for (int k = 0; k < LEVELS && !lns_out_of_work(l, STARTS_PART); k++) {
        l->target_bytes = target_of(l, spread(k), 1);
        if (l->target_bytes <= too_low)
            continue;
        start_level(l);
        if (!pareto_within(l->front, l->target_bytes))
            too_low = l->target_bytes;
    }
}

/* Where the schedules found lie further apart than this part of all, those next to a gap are
 * brought to targets inside it: the smaller one has runs to take back, the larger one drops to
 * make. */
static void fill_gaps(LargeNeighbourhoodSearch *l)
{
    int64_t width = (l->high - l->low) / FINE_LEVELS;
    l->in_vain = 0;
    for (int64_t target = l->high - width; width > 0 && target > l->low; target -= width) {
        const ParetoPoint *best = pareto_within(l->front, target);
        if (!best || lns_out_of_work(l, FILLED_PART))
            return;
        if (best->peak_bytes > target - width)
            continue;
        l->target_bytes = target;
        lns_load(l, &best->schedule);
        lns_repair(l);
        repair_larger(l);
    }
}

void lns_climb(LargeNeighbourhoodSearch *l)
{
    if (l->style.descends)
        descend(l);
    start_levels(l);
    double share = (1 - STARTS_PART) * l->work / (PASSES * LEVELS);
    int64_t bound = l->low;
    deepen(l, 0, SMALLEST_PART);
    for (int pass = 0; pass < PASSES; pass++) {
        l->in_vain = 0;
        l->low = l->front->points.data[0].peak_bytes;
        for (int k = 0; k < LEVELS && !lns_out_of_work(l, 1); k++) {
            double left = l->work - (double)lns_work(l);
            l->target_bytes = target_of(l, k - (double)pass / PASSES, DENSER);
            improve_level(l, left / ((PASSES - pass) * LEVELS - k));
        }
        l->low = bound;
        deepen(l, 2 * share, OVERTIME);
    }
    shrink(l, SHRINK_PART);
    fill_gaps(l);
}
