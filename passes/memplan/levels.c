/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From large buffers to small ones (P6): the few large buffers decide how low a layout can be, and
 * a search over few is quick.  They are placed alone; then the next smaller ones go into the holes
 * by first fit, and an ejection search takes all of them down again; and so on.  A height that the
 * large ones alone did not reach cannot be reached with the small ones added, so there the next
 * search stops. */
#include "ir/support/sort.h"
#include "passes/memplan/place_internal.h"

#include <string.h>

/* Sizes of a level: at least the bound divided by this; all in the last. */
enum { N_LEVELS = 4 };
static const int64_t level_divisor[N_LEVELS] = {100, 1000, 10000, INT64_MAX};
/* Of what effort is left, in tenths. */
enum { LEVEL_SHARE = 8 };

typedef struct Levels {
    const PlaceProblem *p;
    PlaceWork *work;
    MemBuffer *buffers;
    int *member, n_members; /* buffers of the level */
    int *known, n_known;    /* of the one before, by offset */
    int64_t *offset;        /* by buffer: of the one before */
    int64_t floor, unit;
    uint64_t seed;
} Levels;

static bool select_members(Levels *s, int level)
{
    int64_t least = s->p->bound / level_divisor[level];
    s->n_members = 0;
    for (int b = 0; b < s->p->n; b++)
        if (s->p->size[b] >= least)
            s->member[s->n_members++] = b;
    return s->n_members > s->n_known;
}

/* Known buffers by offset, then the others by size: first fit puts none of the known ones higher
 * than it was.  Positions are those of the members. */
static void extend_order(const Levels *s, Pool *pool, const PlaceProblem *q, int *order)
{
    int *position = POOL_ARRAY(pool, (size_t)s->p->n, int), *by_size;
    bool *is_known = POOL_ARRAY(pool, (size_t)q->n, bool);
    by_size = POOL_ARRAY(pool, (size_t)q->n, int);
    for (int i = 0; i < q->n; i++)
        position[s->member[i]] = i;
    int n = 0;
    for (int i = 0; i < s->n_known; i++) {
        order[n++] = position[s->known[i]];
        is_known[position[s->known[i]]] = true;
    }
    place_order(q, "AZT", by_size);
    for (int i = 0; i < q->n; i++)
        if (!is_known[by_size[i]])
            order[n++] = by_size[i];
}

static void first_layout(const Levels *s, Pool *pool, const PlaceProblem *q, int64_t *offset)
{
    int *order = POOL_ARRAY(pool, (size_t)q->n, int);
    if (s->n_known == 0) {
        place_order(q, "ATZ", order);
        place_skyline(q, order, offset, s->work);
    } else {
        extend_order(s, pool, q, order);
        place_first_fit(q, order, offset, s->work);
    }
}

static void remember(Levels *s, Pool *pool, const int64_t *offset)
{
    Ranked *items = POOL_ARRAY(pool, (size_t)s->n_members, Ranked);
    for (int i = 0; i < s->n_members; i++) {
        s->offset[s->member[i]] = offset[i];
        items[i] = (Ranked){offset[i], s->member[i]};
    }
    sort_ranked(items, (size_t)s->n_members);
    for (int i = 0; i < s->n_members; i++)
        s->known[i] = items[i].item;
    s->n_known = s->n_members;
}

/* Places the members as low as the effort allows; the height. */
static int64_t place_level(Levels *s)
{
    Pool *pool = pool_new_child(s->p->scratch);
    PlaceProblem *q = place_compress(pool, s->buffers, s->member, s->n_members);
    q->target = s->p->target;
    int64_t *offset = POOL_ARRAY(pool, (size_t)q->n, int64_t);
    PlaceWork *work = s->work;
    int64_t limit = work->limit, left = limit - work->done;
    if (s->n_members < s->p->n)
        work->limit = work->done + left / 10 * LEVEL_SHARE;
    first_layout(s, pool, q, offset);
    int64_t height = place_eject(q, offset, s->floor, s->unit, s->seed, work);
    work->limit = limit;
    remember(s, pool, offset);
    pool_free(pool);
    return height;
}

int64_t place_levels(const PlaceProblem *p, int64_t *offset, uint64_t seed, PlaceWork *work)
{
    Pool *pool = pool_new_child(p->scratch);
    size_t n = (size_t)p->n;
    Levels s = {.p = p,
                .work = work,
                .floor = p->target,
                .unit = place_unit(p),
                .offset = offset,
                .seed = seed};
    s.buffers = POOL_ARRAY(pool, n, MemBuffer);
    s.member = POOL_ARRAY(pool, n, int);
    s.known = POOL_ARRAY(pool, n, int);
    for (int b = 0; b < p->n; b++)
        s.buffers[b] = (MemBuffer){p->start[b], p->end[b], p->size[b]};
    int64_t height = 0;
    for (int level = 0; level < N_LEVELS; level++)
        if (select_members(&s, level)) {
            height = place_level(&s);
            s.floor = height > s.floor ? height : s.floor;
        }
    pool_free(pool);
    return height;
}
