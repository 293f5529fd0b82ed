/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/remat/model/pareto_front.h"

#include "passes/remat/model/schedule.h"

#include <string.h>

/* Index of the first point with a larger peak: O(log n). */
static size_t first_above(const ParetoFront *f, int64_t bytes)
{
    size_t lo = 0, hi = f->points.len;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (f->points.data[mid].peak_bytes <= bytes)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

const ParetoPoint *pareto_within(const ParetoFront *f, int64_t budget_bytes)
{
    size_t i = first_above(f, budget_bytes);
    return i > 0 ? &f->points.data[i - 1] : NULL;
}

const ParetoPoint *pareto_above(const ParetoFront *f, int64_t budget_bytes)
{
    size_t i = first_above(f, budget_bytes);
    return i < f->points.len ? &f->points.data[i] : NULL;
}

/* Puts x where it belongs and takes out the points it is better than. */
static void insert(ParetoFront *f, ParetoPoint x)
{
    size_t at = first_above(f, x.peak_bytes), end = at;
    if (at > 0 && f->points.data[at - 1].peak_bytes == x.peak_bytes)
        at--;
    while (end < f->points.len && f->points.data[end].time >= x.time)
        end++;
    for (size_t i = at; i < end; i++)
        pool_free(f->points.data[i].pool);
    vec_push(f->pool, &f->points, x); /* makes room */
    size_t behind = f->points.len - 1 - end;
    memmove(f->points.data + at + 1, f->points.data + end, behind * sizeof x);
    f->points.data[at] = x;
    f->points.len = at + 1 + behind;
}

bool pareto_takes(const ParetoFront *f, int64_t peak_bytes, double time)
{
    const ParetoPoint *rival = pareto_within(f, peak_bytes);
    /* Sums in another order differ in their last bits: no gain. */
    return !rival || time < rival->time * (1 - 1e-12);
}

bool pareto_offer(ParetoFront *f, int64_t peak_bytes, double time, const RematSchedule *s)
{
    if (!pareto_takes(f, peak_bytes, time))
        return false;
    Pool *pool = pool_new_child(f->pool);
    ParetoPoint x = {peak_bytes, time, remat_schedule_copy(pool, s), pool};
    insert(f, x);
    return true;
}

void pareto_merge(ParetoFront *f, const ParetoFront *other)
{
    for (size_t k = 0; k < other->points.len; k++) {
        const ParetoPoint *x = &other->points.data[k];
        pareto_offer(f, x->peak_bytes, x->time, &x->schedule);
    }
}
