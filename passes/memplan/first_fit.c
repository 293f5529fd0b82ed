/* SPDX-License-Identifier: GPL-3.0-or-later */
/* First fit (P3): each buffer goes to the lowest gap among the placed buffers that it meets in
 * time.  No conflict graph: time is cut into blocks of about a mean life, and each keeps what was
 * placed in it sorted by offset.  A buffer looks at the few blocks of its life, and at the list of
 * those that live too long for blocks; these look at a list of all. */
#include "passes/memplan/place_internal.h"

#include <string.h>

enum { LONG_LIFE = 4, MIN_BLOCKS = 8 }; /* blocks */
enum { INSERT_STEPS = 8, MOVES_A_STEP = 8 };

typedef struct Placed {
    int start, end;
    int64_t offset, top;
} Placed;

typedef struct PlacedList {
    Placed *item;
    int n, room, cursor;
} PlacedList;

typedef struct FirstFit {
    const PlaceProblem *p;
    PlaceWork *work;
    Pool *pool;
    int block_slots, n_blocks; /* n_blocks 0: everything is long-lived */
    PlacedList *block;
    PlacedList all, long_lived;
} FirstFit;

static void insert_sorted(FirstFit *f, PlacedList *list, Placed item)
{
    int lo = 0, hi = list->n;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (list->item[mid].offset <= item.offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (list->n == list->room) {
        Placed *old = list->item;
        list->room = 2 * list->room + 8;
        list->item = POOL_ARRAY(f->pool, (size_t)list->room, Placed);
        if (list->n > 0)
            memcpy(list->item, old, (size_t)list->n * sizeof *old);
    }
    memmove(list->item + lo + 1, list->item + lo, (size_t)(list->n - lo) * sizeof item);
    list->item[lo] = item;
    list->n++;
    f->work->done += (list->n - lo) / MOVES_A_STEP + INSERT_STEPS;
}

/* The lowest offset from `floor` on at which [floor, floor + size) meets nothing of the list.  The
 * cursor stays behind what lies below. */
static int64_t rise(FirstFit *f, PlacedList *list, int b, int64_t floor)
{
    int start = f->p->start[b], end = f->p->end[b], j = list->cursor;
    int64_t size = f->p->size[b];
    for (; j < list->n && list->item[j].offset < floor + size; j++) {
        const Placed *q = &list->item[j];
        if (q->start < end && q->end > start && q->top > floor)
            floor = q->top;
    }
    f->work->done += j - list->cursor + 1;
    list->cursor = j;
    return floor;
}

static bool is_long(const FirstFit *f, int b)
{
    return f->n_blocks == 0 ||
           (int64_t)f->p->end[b] - f->p->start[b] > (int64_t)LONG_LIFE * f->block_slots;
}

static int first_block(const FirstFit *f, int b)
{
    return f->p->start[b] / f->block_slots;
}

static int last_block(const FirstFit *f, int b)
{
    return (f->p->end[b] - 1) / f->block_slots;
}

static int64_t lowest_gap(FirstFit *f, int b)
{
    int64_t floor = 0, before;
    f->all.cursor = f->long_lived.cursor = 0;
    if (is_long(f, b))
        return rise(f, &f->all, b, 0);
    for (int k = first_block(f, b); k <= last_block(f, b); k++)
        f->block[k].cursor = 0;
    do { /* until no list lifts it */
        before = floor;
        floor = rise(f, &f->long_lived, b, floor);
        for (int k = first_block(f, b); k <= last_block(f, b); k++)
            floor = rise(f, &f->block[k], b, floor);
    } while (floor > before);
    return floor;
}

static void insert(FirstFit *f, int b, int64_t offset)
{
    Placed item = {f->p->start[b], f->p->end[b], offset, offset + f->p->size[b]};
    insert_sorted(f, &f->all, item);
    if (f->n_blocks == 0)
        return;
    if (is_long(f, b)) {
        insert_sorted(f, &f->long_lived, item);
        return;
    }
    for (int k = first_block(f, b); k <= last_block(f, b); k++)
        insert_sorted(f, &f->block[k], item);
}

static void choose_blocks(FirstFit *f)
{
    int64_t lives = 0;
    for (int b = 0; b < f->p->n; b++)
        lives += f->p->end[b] - f->p->start[b];
    f->block_slots = (int)(lives / f->p->n) + 1;
    f->n_blocks = (f->p->n_slots - 1) / f->block_slots + 1;
    if (f->n_blocks < MIN_BLOCKS)
        f->n_blocks = 0;
    f->block = POOL_ARRAY(f->pool, (size_t)f->n_blocks + 1, PlacedList);
}

int64_t place_first_fit(const PlaceProblem *p, const int *order, int64_t *offset, PlaceWork *work)
{
    FirstFit f = {.p = p, .work = work, .pool = pool_new_child(p->scratch)};
    choose_blocks(&f);
    int64_t height = 0;
    for (int k = 0; k < p->n; k++) {
        int b = order[k];
        offset[b] = lowest_gap(&f, b);
        insert(&f, b, offset[b]);
        if (offset[b] + p->size[b] > height)
            height = offset[b] + p->size[b];
    }
    pool_free(f.pool);
    return height;
}
