/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/remat/model/front.h"

#include <string.h>

/* Index of the first point with a larger peak: O(log n). */
static size_t first_above(const Front *f, int64_t bytes)
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

const FrontPoint *front_within(const Front *f, int64_t budget_bytes)
{
    size_t i = first_above(f, budget_bytes);
    return i > 0 ? &f->points.data[i - 1] : NULL;
}

const FrontPoint *front_above(const Front *f, int64_t budget_bytes)
{
    size_t i = first_above(f, budget_bytes);
    return i < f->points.len ? &f->points.data[i] : NULL;
}

/* Puts x where it belongs and takes out the points it is better than. */
static void insert(Front *f, FrontPoint x)
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

bool front_takes(const Front *f, int64_t peak_bytes, double time)
{
    const FrontPoint *rival = front_within(f, peak_bytes);
    /* Sums in another order differ in their last bits: no gain. */
    return !rival || time < rival->time * (1 - 1e-12);
}

bool front_offer(Front *f, int64_t peak_bytes, double time, const RematSchedule *s)
{
    if (!front_takes(f, peak_bytes, time))
        return false;
    FrontPoint x = {peak_bytes, time, {s->len, NULL}, pool_new_child(f->pool)};
    x.schedule.node = POOL_ARRAY(x.pool, (size_t)s->len + 1, int);
    memcpy(x.schedule.node, s->node, (size_t)s->len * sizeof *s->node);
    insert(f, x);
    return true;
}

void front_merge(Front *f, const Front *other)
{
    for (size_t k = 0; k < other->points.len; k++) {
        const FrontPoint *x = &other->points.data[k];
        front_offer(f, x->peak_bytes, x->time, &x->schedule);
    }
}
