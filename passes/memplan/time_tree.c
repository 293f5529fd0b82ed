#include "passes/memplan/time_tree.h"

#include <stdlib.h>
#include <string.h>

/* Buffers of a leaf, about; at most so many parts a buffer, on average. */
enum { LEAF_BUFFERS = 150, MAX_PARTS = 64, BRANCHES = 4 };
enum { INSERT_STEPS = 10, MOVES_A_STEP = 8, SORT_STEPS = 20 };

static int leaf_of(const TimeTree *t, int slot)
{
    return t->n_parts - t->n_leaves + 1 + (int)((int64_t)slot * t->n_leaves / t->p->n_slots);
}

/* The parts in which a buffer lives: from the leaves up, [first,last] of each depth. */
typedef struct PartRange {
    int first, last;
} PartRange;

static PartRange leaves_of(const TimeTree *t, int b)
{
    return (PartRange){leaf_of(t, t->p->start[b]), leaf_of(t, t->p->end[b] - 1)};
}

static PartRange parents(PartRange r)
{
    return (PartRange){(r.first + BRANCHES - 2) / BRANCHES, (r.last + BRANCHES - 2) / BRANCHES};
}

/* Counts the buffers of each part; the sum over all parts. */
static int64_t count_buffers(const TimeTree *t, int *count)
{
    int64_t sum = 0;
    memset(count, 0, ((size_t)t->n_parts + 1) * sizeof *count);
    for (int b = 0; b < t->p->n; b++)
        for (PartRange r = leaves_of(t, b); r.first > 0; r = parents(r))
            for (int k = r.first; k <= r.last; k++, sum++)
                count[k]++;
    return sum;
}

static void set_leaves(TimeTree *t, int n)
{
    t->n_leaves = n;
    t->n_parts = (BRANCHES * n - 1) / (BRANCHES - 1);
}

TimeTree *time_tree_new(Pool *pool, const PlaceProblem *p, PlaceWork *work)
{
    TimeTree *t = POOL_NEW(pool, TimeTree);
    *t = (TimeTree){.p = p, .work = work};
    set_leaves(t, 1);
    while (t->n_leaves * LEAF_BUFFERS < p->n && t->n_leaves < p->n_slots)
        set_leaves(t, BRANCHES * t->n_leaves);
    int *count = POOL_ARRAY(pool, (size_t)t->n_parts + 1, int);
    while (count_buffers(t, count) > (int64_t)MAX_PARTS * p->n && t->n_leaves > 1)
        set_leaves(t, t->n_leaves / BRANCHES);
    t->part = POOL_ARRAY(pool, (size_t)t->n_parts + 1, TimePart);
    for (int k = 1; k <= t->n_parts; k++) {
        t->part[k].bottom = POOL_ARRAY(pool, (size_t)count[k] + 1, TimeMark);
        t->part[k].top = POOL_ARRAY(pool, (size_t)count[k] + 1, TimeMark);
    }
    t->bottom = POOL_ARRAY(pool, (size_t)p->n, TimeMark);
    t->top = POOL_ARRAY(pool, (size_t)p->n, TimeMark);
    return t;
}

static int compare_marks(const void *a, const void *b)
{
    const TimeMark *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (x->buffer > y->buffer) - (x->buffer < y->buffer);
}

/* Where the mark is in the list, or belongs. */
static int position(const TimeMark *list, int n, const TimeMark *mark)
{
    int lo = 0, hi = n;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (compare_marks(&list[mid], mark) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void insert_mark(TimeMark *list, int n, const TimeMark *mark)
{
    int k = position(list, n, mark);
    memmove(list + k + 1, list + k, (size_t)(n - k) * sizeof *list);
    list[k] = *mark;
}

static void delete_mark(TimeMark *list, int n, const TimeMark *mark)
{
    int k = position(list, n, mark);
    memmove(list + k, list + k + 1, (size_t)(n - k - 1) * sizeof *list);
}

static TimeMark mark_of(const TimeTree *t, int b, int64_t at)
{
    return (TimeMark){at, t->p->start[b], t->p->end[b], b};
}

void time_tree_add(TimeTree *t, int b, int64_t offset)
{
    TimeMark bottom = mark_of(t, b, offset), top = mark_of(t, b, offset + t->p->size[b]);
    for (PartRange r = leaves_of(t, b); r.first > 0; r = parents(r))
        for (int k = r.first; k <= r.last; k++) {
            TimePart *part = &t->part[k];
            insert_mark(part->bottom, part->n, &bottom);
            insert_mark(part->top, part->n, &top);
            part->n++;
            t->work->done += INSERT_STEPS + part->n / MOVES_A_STEP;
        }
}

void time_tree_remove(TimeTree *t, int b, int64_t offset)
{
    TimeMark bottom = mark_of(t, b, offset), top = mark_of(t, b, offset + t->p->size[b]);
    for (PartRange r = leaves_of(t, b); r.first > 0; r = parents(r))
        for (int k = r.first; k <= r.last; k++) {
            TimePart *part = &t->part[k];
            delete_mark(part->bottom, part->n, &bottom);
            delete_mark(part->top, part->n, &top);
            part->n--;
            t->work->done += INSERT_STEPS + part->n / MOVES_A_STEP;
        }
}

void time_tree_load(TimeTree *t, const int *buffers, int n, const int64_t *offset)
{
    for (int i = 0; i < n; i++) {
        t->bottom[i] = mark_of(t, buffers[i], offset[buffers[i]]);
        t->top[i] = mark_of(t, buffers[i], offset[buffers[i]] + t->p->size[buffers[i]]);
    }
    qsort(t->bottom, (size_t)n, sizeof *t->bottom, compare_marks);
    qsort(t->top, (size_t)n, sizeof *t->top, compare_marks);
    t->work->done += (int64_t)SORT_STEPS * n;
    for (int k = 1; k <= t->n_parts; k++)
        t->part[k].n = 0;
    for (int i = 0; i < n; i++)
        for (PartRange r = leaves_of(t, t->bottom[i].buffer); r.first > 0; r = parents(r))
            for (int k = r.first; k <= r.last; k++)
                t->part[k].bottom[t->part[k].n++] = t->bottom[i];
    for (int k = 1; k <= t->n_parts; k++) {
        t->work->done += t->part[k].n;
        t->part[k].n = 0;
    }
    for (int i = 0; i < n; i++)
        for (PartRange r = leaves_of(t, t->top[i].buffer); r.first > 0; r = parents(r))
            for (int k = r.first; k <= r.last; k++)
                t->part[k].top[t->part[k].n++] = t->top[i];
}

const TimePart *time_tree_part(const TimeTree *t, int b)
{
    PartRange r = leaves_of(t, b);
    while (r.first != r.last)
        r = parents(r);
    return &t->part[r.first];
}
