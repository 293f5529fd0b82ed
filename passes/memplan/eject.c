/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ejection search (P6): the buffers of a layout that stick out above a goal are taken out and put
 * back below it, each at the offset where it evicts the least weight; what it evicts is put back
 * next, the heaviest first, until nothing is left over.  A weight is nearly the area, and grows
 * when the buffer has to evict others, so that what is hard to place stays where it is; what was
 * placed a few moves ago is dear as well.  Now and then everything falls down, which joins the
 * holes.
 *
 * Sources: ejection chains with penalties (Nagata and Braysy 2009), weights that grow at local
 * minima (Morris 1993), tabu search (Glover 1989). */
#include "passes/memplan/place_internal.h"
#include "passes/memplan/placed_ends.h"

#include <math.h>
#include <string.h>

/* Weights: a buffer as large as the bound weighs 2^WEIGHT_BITS a slot; each time it evicts others,
 * a part of that more.  With 2^15 slots and 2^22 evictions all together stay below 2^60. */
enum {
    WEIGHT_BITS = 20,
    GROWTH_PARTS = 2,
    AREA_GROWTH_PARTS = 5,
    RECENT_FACTOR = 4,
    RECENT_MOVES = 3,
    RECENT_SPREAD = 10
};
/* Moves that evict: of an attempt at first, and at most; between two falls. */
enum { FIRST_MOVES = 1000, MAX_MOVES = 1 << 16, FALL_MOVES = 200 };
/* A goal is 1/4 of the way down, after failures 1/8, ...; then again with twice the moves. */
enum { FIRST_SHIFT = 2, LAST_SHIFT = 6 };

/* An end of a placed buffer that b meets, and what it costs to evict it. */
typedef struct Mark {
    int64_t at, cost;
    int buffer;
} Mark;

typedef struct Eject {
    const PlaceProblem *p;
    PlaceWork *work;
    PlacedEnds *placed;
    int64_t goal, *offset;
    int64_t *base, *weight; /* by buffer */
    int *recent;            /* by buffer: dear until so many moves are done */
    int growth_parts;       /* a weight grows by this part of its base */
    int moves, *queue, n_queue, *list;
    Mark *bottom, *top; /* of what the buffer in hand meets, ascending */
    int64_t *height;    /* by slot, in a fall */
    uint64_t random;
} Eject;

static int64_t eviction_cost(const Eject *e, int b)
{
    return e->recent[b] > e->moves ? RECENT_FACTOR * e->weight[b] : e->weight[b];
}

/* Those of the ends that b meets, with one at the end that is never reached. */
static void collect_marks(Eject *e, const EndList *ends, int b, Mark *marks)
{
    int n = placed_meeting(e->placed, ends, b, e->list);
    for (int k = 0; k < n; k++) {
        int other = ends->buffer[e->list[k]];
        marks[k] = (Mark){ends->at[e->list[k]], eviction_cost(e, other), other};
    }
    marks[n] = (Mark){INT64_MAX, 0, -1};
    e->work->done += 2 * n;
}

/* The offset at which b evicts the least: the lowest free one, or one of the cheapest by chance.
 * On its way up it enters what begins below its top, leaves what ends at its bottom, and stops
 * where it rests on a buffer or touches one from below. */
static int64_t cheapest_offset(Eject *e, int b, int64_t *least)
{
    int64_t size = e->p->size[b], last = e->goal - size, best = 0, cost = 0;
    uint64_t n_best = 0;
    collect_marks(e, &e->placed->bottom, b, e->bottom);
    collect_marks(e, &e->placed->top, b, e->top);
    *least = INT64_MAX;
    const Mark *entered = e->bottom, *left = e->top;
    for (; entered->at < size; entered++)
        cost += entered->cost;
    for (int64_t at = 0;;) {
        for (; left->at <= at; left++)
            cost -= left->cost;
        if (cost < *least) {
            *least = cost;
            best = at;
            n_best = 1;
        } else if (cost == *least && place_random(&e->random) % ++n_best == 0) {
            best = at;
        }
        if (*least == 0 || at == last)
            break;
        for (; entered->at <= at + size; entered++)
            cost += entered->cost;
        int64_t below = entered->at == INT64_MAX ? INT64_MAX : entered->at - size;
        at = below < left->at ? below : left->at;
        at = at < last ? at : last;
    }
    return best;
}

/* The queue is a heap, the heaviest in front: weights of what waits do not change. */
static bool heavier(const Eject *e, int a, int b)
{
    if (e->weight[a] != e->weight[b])
        return e->weight[a] > e->weight[b];
    return a < b;
}

static void enqueue(Eject *e, int b)
{
    int k = e->n_queue++;
    for (; k > 0 && heavier(e, b, e->queue[(k - 1) / 2]); k = (k - 1) / 2)
        e->queue[k] = e->queue[(k - 1) / 2];
    e->queue[k] = b;
}

static int take_heaviest(Eject *e)
{
    int heaviest = e->queue[0], last = e->queue[--e->n_queue], k = 0;
    for (int child = 1; child < e->n_queue; child = 2 * k + 1) {
        if (child + 1 < e->n_queue && heavier(e, e->queue[child + 1], e->queue[child]))
            child++;
        if (heavier(e, last, e->queue[child]))
            break;
        e->queue[k] = e->queue[child];
        k = child;
    }
    e->queue[k] = last;
    return heaviest;
}

/* Of what cheapest_offset met. */
static void evict_overlaps(Eject *e, int b, int64_t at)
{
    for (const Mark *m = e->bottom; m->at < at + e->p->size[b]; m++)
        if (m->at + e->p->size[m->buffer] > at) {
            placed_remove(e->placed, m->buffer, m->at);
            enqueue(e, m->buffer);
        }
}

/* From the lowest up, everything that is placed goes down until it rests on something. */
static void fall(Eject *e)
{
    const PlaceProblem *p = e->p;
    const EndList *all = &e->placed->bottom;
    int n = all->n;
    memset(e->height, 0, (size_t)p->n_slots * sizeof *e->height);
    for (int k = 0; k < n; k++) {
        int b = e->list[k] = all->buffer[k];
        int64_t at = 0;
        for (int t = p->start[b]; t < p->end[b]; t++)
            at = e->height[t] > at ? e->height[t] : at;
        for (int t = p->start[b]; t < p->end[b]; t++)
            e->height[t] = at + p->size[b];
        e->offset[b] = at;
        e->work->done += (p->end[b] - p->start[b]) / 2;
    }
    placed_load(e->placed, e->list, n, e->offset);
}

static void place_one(Eject *e, int b)
{
    int64_t cost;
    e->offset[b] = cheapest_offset(e, b, &cost);
    if (cost > 0) {
        evict_overlaps(e, b, e->offset[b]);
        e->weight[b] += e->base[b] / e->growth_parts + 1;
        e->moves++;
    }
    placed_add(e->placed, b, e->offset[b]);
    e->recent[b] = e->moves + RECENT_MOVES + (int)(place_random(&e->random) % RECENT_SPREAD);
    if (cost > 0 && e->moves % FALL_MOVES == 0)
        fall(e);
}

/* What of the layout is within the goal is placed, the rest queued.  Weights stay: what was hard to
 * place for one goal is for the next. */
static void begin(Eject *e, const int64_t *layout)
{
    int n = 0;
    e->n_queue = e->moves = 0;
    memcpy(e->offset, layout, (size_t)e->p->n * sizeof *layout);
    for (int b = 0; b < e->p->n; b++) {
        e->recent[b] = 0;
        if (layout[b] + e->p->size[b] <= e->goal)
            e->list[n++] = b;
        else
            enqueue(e, b);
    }
    placed_load(e->placed, e->list, n, e->offset);
}

static bool reach_goal(Eject *e, const int64_t *layout, int max_moves)
{
    begin(e, layout);
    while (e->n_queue > 0 && e->moves < max_moves && e->work->done < e->work->limit)
        place_one(e, take_heaviest(e));
    return e->n_queue == 0;
}

/* The area; for odd seeds, life times size to the power of 5/8.  By the area, what is small hardly
 * ever moves what is large again; but neither is better everywhere.  By square roots, which are the
 * same on all machines. */
static int64_t base_weight(const PlaceProblem *p, int b, uint64_t seed)
{
    double part = (double)p->size[b] / (double)p->bound, root = sqrt(part);
    part = seed % 2 == 0 ? part : root * sqrt(sqrt(root));
    return ((int64_t)(part * (1 << WEIGHT_BITS)) + 1) * (p->end[b] - p->start[b]);
}

static Eject *eject_new(Pool *pool, const PlaceProblem *p, uint64_t seed, PlaceWork *work)
{
    Eject *e = POOL_NEW(pool, Eject);
    size_t n = (size_t)p->n;
    *e = (Eject){.p = p, .work = work, .random = (seed + 1) * 0x9e3779b97f4a7c15u};
    e->growth_parts = seed % 2 == 0 ? AREA_GROWTH_PARTS : GROWTH_PARTS;
    e->placed = placed_new(pool, p, work);
    e->bottom = POOL_ARRAY(pool, n + 1, Mark);
    e->top = POOL_ARRAY(pool, n + 1, Mark);
    e->offset = POOL_ARRAY(pool, n, int64_t);
    e->base = POOL_ARRAY(pool, n, int64_t);
    e->weight = POOL_ARRAY(pool, n, int64_t);
    e->recent = POOL_ARRAY(pool, n, int);
    e->queue = POOL_ARRAY(pool, n, int);
    e->list = POOL_ARRAY(pool, n + 1, int);
    e->height = POOL_ARRAY(pool, (size_t)p->n_slots, int64_t);
    for (int b = 0; b < p->n; b++)
        e->weight[b] = e->base[b] = base_weight(p, b, seed);
    return e;
}

bool place_eject_within(const PlaceProblem *p, int64_t *offset, int64_t limit, uint64_t seed,
                        PlaceWork *work)
{
    Pool *pool = pool_new_child(p->scratch);
    Eject *e = eject_new(pool, p, seed, work);
    bool found = false;
    e->goal = limit;
    for (int moves = FIRST_MOVES; !found && work->done < work->limit;) {
        found = reach_goal(e, offset, moves);
        moves = moves < MAX_MOVES ? 2 * moves : moves;
    }
    if (found)
        memcpy(offset, e->offset, (size_t)p->n * sizeof *offset);
    pool_free(pool);
    return found;
}

int64_t place_eject(const PlaceProblem *p, int64_t *offset, int64_t floor, int64_t unit,
                    uint64_t seed, PlaceWork *work)
{
    Pool *pool = pool_new_child(p->scratch);
    Eject *e = eject_new(pool, p, seed, work);
    int64_t height = place_height(p, offset);
    int shift = FIRST_SHIFT, max_moves = FIRST_MOVES;
    while (height > floor && work->done < work->limit) {
        e->goal = (height - ((height - floor) >> shift) - 1) / unit * unit;
        e->goal = e->goal < floor ? floor : e->goal;
        if (reach_goal(e, offset, max_moves)) {
            memcpy(offset, e->offset, (size_t)p->n * sizeof *offset);
            height = place_height(p, offset);
            shift = FIRST_SHIFT;
        } else if (shift++ == LAST_SHIFT) {
            shift = FIRST_SHIFT;
            max_moves = max_moves < MAX_MOVES ? 2 * max_moves : max_moves;
        }
    }
    pool_free(pool);
    return height;
}
