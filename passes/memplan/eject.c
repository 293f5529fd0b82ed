/* Ejection search (P6): the buffers of a layout that stick out above a goal are taken out and put
 * back below it, each at the offset where it evicts the least weight; what it evicts is put back
 * next, the heaviest first, until nothing is left over.  A weight is the area, and grows when the
 * buffer has to evict others, so that what is hard to place stays where it is; what was placed a
 * few moves ago is dear as well.  Now and then everything falls down, which joins the holes.
 *
 * Sources: ejection chains with penalties (Nagata and Braysy 2009), weights that grow at local
 * minima (Morris 1993), tabu search (Glover 1989). */
#include "passes/memplan/place_internal.h"
#include "passes/memplan/time_tree.h"

#include <string.h>

/* Weights: a buffer as large as the bound weighs 2^WEIGHT_BITS a slot; each time it evicts others,
 * a part of that more.  With 2^15 slots and 2^22 evictions all together stay below 2^60. */
enum {
    WEIGHT_BITS = 20,
    GROWTH_PARTS = 5,
    RECENT_FACTOR = 4,
    RECENT_MOVES = 3,
    RECENT_SPREAD = 10
};
/* Moves that evict: of an attempt at first, and at most; between two falls. */
enum { FIRST_MOVES = 1000, MAX_MOVES = 1 << 16, FALL_MOVES = 200 };
/* A goal is 1/4 of the way down, after failures 1/8, ...; then again with twice the moves. */
enum { FIRST_SHIFT = 2, LAST_SHIFT = 6 };

typedef struct Eject {
    const PlaceProblem *p;
    PlaceWork *work;
    TimeTree *tree;
    int64_t goal, *offset;
    int64_t *base, *weight; /* by buffer */
    int *recent;            /* by buffer: dear until so many moves are done */
    int moves, *queue, n_queue, *list;
    int64_t *height; /* by slot, in a fall */
    uint64_t random;
} Eject;

/* A buffer on its way up through what it meets. */
typedef struct Ascent {
    const TimePart *part;
    int start, end, entered, left; /* marks of the part that are behind it */
    int64_t size, cost;            /* weight of what it overlaps */
} Ascent;

static bool meets(const Ascent *a, const TimeMark *m)
{
    return m->start < a->end && m->end > a->start;
}

static int64_t eviction_cost(const Eject *e, int b)
{
    return e->recent[b] > e->moves ? RECENT_FACTOR * e->weight[b] : e->weight[b];
}

/* At offset `at` it overlaps what begins below its top. */
static void enter(const Eject *e, Ascent *a, int64_t at)
{
    const TimeMark *m = a->part->bottom;
    for (; a->entered < a->part->n && m[a->entered].at < at + a->size; a->entered++)
        if (meets(a, &m[a->entered]))
            a->cost += eviction_cost(e, m[a->entered].buffer);
}

/* ... and no more what ends at its bottom. */
static void leave(const Eject *e, Ascent *a, int64_t at)
{
    const TimeMark *m = a->part->top;
    for (; a->left < a->part->n && m[a->left].at <= at; a->left++)
        if (meets(a, &m[a->left]))
            a->cost -= eviction_cost(e, m[a->left].buffer);
}

/* The next offset at which it rests on a buffer or touches one from below. */
static int64_t next_touch(Ascent *a)
{
    const TimeMark *bottom = a->part->bottom, *top = a->part->top;
    while (a->entered < a->part->n && !meets(a, &bottom[a->entered]))
        a->entered++;
    while (a->left < a->part->n && !meets(a, &top[a->left]))
        a->left++;
    int64_t below = a->entered < a->part->n ? bottom[a->entered].at - a->size : INT64_MAX;
    int64_t above = a->left < a->part->n ? top[a->left].at : INT64_MAX;
    return below < above ? below : above;
}

/* The offset at which b evicts the least: the lowest free one, or one of the cheapest by chance. */
static int64_t cheapest_offset(Eject *e, int b, int64_t *cost)
{
    Ascent a = {time_tree_part(e->tree, b), e->p->start[b], e->p->end[b], 0, 0, e->p->size[b], 0};
    int64_t last = e->goal - a.size, best = 0;
    uint64_t n_best = 0;
    *cost = INT64_MAX;
    enter(e, &a, 0);
    for (int64_t at = 0;;) {
        leave(e, &a, at);
        if (a.cost < *cost) {
            *cost = a.cost;
            best = at;
            n_best = 1;
        } else if (a.cost == *cost && place_random(&e->random) % ++n_best == 0) {
            best = at;
        }
        if (*cost == 0 || at == last)
            break;
        enter(e, &a, at + 1);
        at = next_touch(&a);
        if (at > last)
            at = last;
    }
    e->work->done += a.entered + a.left;
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

static void evict_overlaps(Eject *e, int b, int64_t at)
{
    const PlaceProblem *p = e->p;
    const TimePart *part = time_tree_part(e->tree, b);
    int n = 0;
    for (int k = 0; k < part->n && part->bottom[k].at < at + p->size[b]; k++) {
        const TimeMark *m = &part->bottom[k];
        if (m->start < p->end[b] && m->end > p->start[b] && m->at + p->size[m->buffer] > at)
            e->list[n++] = m->buffer;
    }
    e->work->done += part->n;
    for (int k = 0; k < n; k++) {
        time_tree_remove(e->tree, e->list[k], e->offset[e->list[k]]);
        enqueue(e, e->list[k]);
    }
}

/* From the lowest up, everything that is placed goes down until it rests on something. */
static void fall(Eject *e)
{
    const PlaceProblem *p = e->p;
    const TimePart *all = &e->tree->part[1];
    int n = all->n;
    memset(e->height, 0, (size_t)p->n_slots * sizeof *e->height);
    for (int k = 0; k < n; k++) {
        int b = e->list[k] = all->bottom[k].buffer;
        int64_t at = 0;
        for (int t = p->start[b]; t < p->end[b]; t++)
            at = e->height[t] > at ? e->height[t] : at;
        for (int t = p->start[b]; t < p->end[b]; t++)
            e->height[t] = at + p->size[b];
        e->offset[b] = at;
        e->work->done += (p->end[b] - p->start[b]) / 2;
    }
    time_tree_load(e->tree, e->list, n, e->offset);
}

static void place_one(Eject *e, int b)
{
    int64_t cost;
    e->offset[b] = cheapest_offset(e, b, &cost);
    if (cost > 0) {
        evict_overlaps(e, b, e->offset[b]);
        e->weight[b] += e->base[b] / GROWTH_PARTS + 1;
        e->moves++;
    }
    time_tree_add(e->tree, b, e->offset[b]);
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
    time_tree_load(e->tree, e->list, n, e->offset);
}

static bool reach_goal(Eject *e, const int64_t *layout, int max_moves)
{
    begin(e, layout);
    while (e->n_queue > 0 && e->moves < max_moves && e->work->done < e->work->limit)
        place_one(e, take_heaviest(e));
    return e->n_queue == 0;
}

static Eject *eject_new(Pool *pool, const PlaceProblem *p, uint64_t seed, PlaceWork *work)
{
    Eject *e = POOL_NEW(pool, Eject);
    size_t n = (size_t)p->n;
    *e = (Eject){.p = p, .work = work, .random = (seed + 1) * 0x9e3779b97f4a7c15u};
    e->tree = time_tree_new(pool, p, work);
    e->offset = POOL_ARRAY(pool, n, int64_t);
    e->base = POOL_ARRAY(pool, n, int64_t);
    e->weight = POOL_ARRAY(pool, n, int64_t);
    e->recent = POOL_ARRAY(pool, n, int);
    e->queue = POOL_ARRAY(pool, n, int);
    e->list = POOL_ARRAY(pool, n, int);
    e->height = POOL_ARRAY(pool, (size_t)p->n_slots, int64_t);
    int shift = 0;
    while (p->bound >> shift >= (int64_t)1 << WEIGHT_BITS)
        shift++;
    for (int b = 0; b < p->n; b++)
        e->weight[b] = e->base[b] = ((p->size[b] >> shift) + 1) * (p->end[b] - p->start[b]);
    return e;
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
