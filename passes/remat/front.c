#include "passes/remat/front.h"

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

static FrontPoint point_of(Pool *pool, Slots *s)
{
    FrontPoint x = {slots_peak(s, NULL), slots_time(s), 0, NULL};
    x.pair = POOL_ARRAY(pool, 2 * (size_t)slots_recomputed(s) + 1, int);
    for (int slot = 0; slot < slots_count(s); slot++) {
        int n;
        const int *node = slots_in_slot(s, slot, &n);
        for (int i = 0; i < n; i++, x.n++) {
            x.pair[2 * x.n] = node[i];
            x.pair[2 * x.n + 1] = slot;
        }
    }
    return x;
}

/* Puts x where it belongs and takes out the points it is better than. */
static void insert(Front *f, FrontPoint x)
{
    size_t at = first_above(f, x.peak_bytes), end = at;
    if (at > 0 && f->points.data[at - 1].peak_bytes == x.peak_bytes)
        at--;
    while (end < f->points.len && f->points.data[end].time >= x.time)
        end++;
    vec_push(f->pool, &f->points, x); /* makes room */
    size_t behind = f->points.len - 1 - end;
    memmove(f->points.data + at + 1, f->points.data + end, behind * sizeof x);
    f->points.data[at] = x;
    f->points.len = at + 1 + behind;
}

void front_offer(Front *f, Slots *s)
{
    const FrontPoint *rival = front_within(f, slots_peak(s, NULL));
    /* Sums in another order differ in their last bits: no gain. */
    if (!rival || slots_time(s) < rival->time * (1 - 1e-12))
        insert(f, point_of(f->pool, s));
}

void front_load(const FrontPoint *point, Slots *s)
{
    slots_clear(s);
    for (int i = 0; i < point->n; i++)
        slots_add(s, point->pair[2 * i], point->pair[2 * i + 1]);
    slots_commit(s);
}
