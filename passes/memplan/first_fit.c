/* First fit (P3): each buffer goes to the lowest gap among the placed buffers that it meets in
 * time. The placed ones are kept sorted by offset, so one scan finds the gap: no conflict graph. */
#include "passes/memplan/place_internal.h"

#include <string.h>

typedef struct Placed {
    int start, end;
    int64_t offset, top;
} Placed;

static int64_t lowest_gap(const Placed *placed, int n, int start, int end, int64_t size,
                          PlaceWork *work)
{
    int64_t floor = 0;
    int j = 0;
    for (; j < n; j++) {
        if (placed[j].start >= end || placed[j].end <= start)
            continue;
        if (placed[j].offset - floor >= size)
            break;
        if (placed[j].top > floor)
            floor = placed[j].top;
    }
    work->done += j + 1;
    return floor;
}

static void insert_sorted(Placed *placed, int n, Placed item)
{
    int lo = 0, hi = n;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (placed[mid].offset <= item.offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    memmove(placed + lo + 1, placed + lo, (size_t)(n - lo) * sizeof *placed);
    placed[lo] = item;
}

int64_t place_first_fit(const PlaceProblem *p, const int *order, int64_t *offset, PlaceWork *work)
{
    Pool *pool = pool_new_child(p->scratch);
    Placed *placed = POOL_ARRAY(pool, (size_t)p->n, Placed);
    int64_t height = 0;
    for (int k = 0; k < p->n; k++) {
        int b = order[k];
        offset[b] = lowest_gap(placed, k, p->start[b], p->end[b], p->size[b], work);
        Placed item = {p->start[b], p->end[b], offset[b], offset[b] + p->size[b]};
        insert_sorted(placed, k, item);
        if (item.top > height)
            height = item.top;
    }
    pool_free(pool);
    return height;
}
