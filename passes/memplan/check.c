/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Independent check of a placement; it shares no code with the search for offsets. */
#include "passes/memplan/memplan.h"

#include <stdlib.h>
#include <string.h>

typedef struct Event {
    int64_t time;
    int birth; /* deaths (0) come first: lives are half open */
    int buffer;
} Event;

static int compare_events(const void *a, const void *b)
{
    const Event *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->birth != y->birth)
        return x->birth - y->birth;
    return (x->buffer > y->buffer) - (x->buffer < y->buffer);
}

/* Buffers alive, by offset.  They do not overlap, so a newcomer need only look at two of them. */
typedef struct Alive {
    const MemBuffer *buffers;
    const int64_t *offset;
    int *item;
    int n;
} Alive;

static int alive_position(const Alive *a, int64_t offset)
{
    int lo = 0, hi = a->n;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (a->offset[a->item[mid]] < offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The buffer that b overlaps, or -1 after adding b. */
static int alive_add(Alive *a, int b)
{
    int64_t offset = a->offset[b], top = offset + a->buffers[b].size;
    int k = alive_position(a, offset);
    if (k < a->n && a->offset[a->item[k]] < top)
        return a->item[k];
    if (k > 0 && a->offset[a->item[k - 1]] + a->buffers[a->item[k - 1]].size > offset)
        return a->item[k - 1];
    memmove(a->item + k + 1, a->item + k, (size_t)(a->n - k) * sizeof *a->item);
    a->item[k] = b;
    a->n++;
    return -1;
}

static void alive_remove(Alive *a, int b)
{
    int k = alive_position(a, a->offset[b]);
    memmove(a->item + k, a->item + k + 1, (size_t)(a->n - k - 1) * sizeof *a->item);
    a->n--;
}

static int make_events(const MemBuffer *buffers, int n, Event *events)
{
    int m = 0;
    for (int i = 0; i < n; i++) {
        if (buffers[i].size == 0)
            continue;
        events[m++] = (Event){buffers[i].lower, 1, i};
        events[m++] = (Event){buffers[i].upper, 0, i};
    }
    qsort(events, (size_t)m, sizeof *events, compare_events);
    return m;
}

bool memplan_check(Pool *pool, const MemBuffer *buffers, int n, const MemLayout *layout,
                   const char **fault)
{
    Event *events = POOL_ARRAY(pool, 2 * (size_t)n + 1, Event);
    Alive alive = {buffers, layout->offset, POOL_ARRAY(pool, (size_t)n + 1, int), 0};
    int64_t load = 0, max_load = 0, arena = 0;
    int m = make_events(buffers, n, events);
    for (int k = 0; k < m; k++) {
        int b = events[k].buffer;
        if (!events[k].birth) {
            load -= buffers[b].size;
            alive_remove(&alive, b);
            continue;
        }
        load += buffers[b].size;
        max_load = load > max_load ? load : max_load;
        int64_t top = layout->offset[b] + buffers[b].size;
        arena = top > arena ? top : arena;
        int other = layout->offset[b] < 0 ? b : alive_add(&alive, b);
        if (other >= 0) {
            *fault = pool_printf(pool, "buffers %d and %d overlap at time %lld", b, other,
                                 (long long)events[k].time);
            return false;
        }
    }
    if (arena != layout->arena_bytes || max_load != layout->lower_bound_bytes) {
        *fault = pool_printf(pool, "arena is %lld and not %lld, or bound %lld and not %lld",
                             (long long)arena, (long long)layout->arena_bytes, (long long)max_load,
                             (long long)layout->lower_bound_bytes);
        return false;
    }
    return true;
}
