/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Skyline placement with lookahead (P2).
 *
 * Time runs along x, offsets along y.  The skyline is a list of segments, each at the height up to
 * which its slots are filled.  The lowest segment is served first: the best buffer that fits inside
 * it is put on it, or, when none fits, the segment is raised to its lower neighbour (the slots
 * between are lost).  Before a buffer is accepted, what it leaves on either side of itself must
 * still be fillable within the target: a slot is tight when raising it would leave less room than
 * the buffers that still have to go there. */
#include "passes/memplan/place_internal.h"

#include "ir/support/heap.h"
#include <string.h>

enum { MAX_TRIES = 64, MAX_SIDE = 1024 };
enum { SLOT_STEPS = 64 }; /* of a change in the tournament, about */

typedef struct Segment {
    int begin, end; /* slots */
    int64_t height;
    int prev, next;
} Segment;

typedef struct Skyline {
    const PlaceProblem *p;
    PlaceWork *work;
    Segment *segment;
    int n_segments;
    int *lowest; /* tournament over slots: the segment that begins in its part and is lowest */
    int n_leaves;
    int *rank;          /* by buffer: position in the priority order */
    int *first;         /* by slot: best unplaced buffer born there, -1 = none */
    int *next;          /* by buffer: the next best of its slot */
    int64_t *remaining; /* by slot: bytes of unplaced buffers */
    int *candidate;
    int64_t *offset;
    int64_t height;
} Skyline;

static int lower_of(const Skyline *s, int a, int b)
{
    if (a < 0 || b < 0)
        return a < 0 ? b : a;
    return s->segment[b].height < s->segment[a].height ? b : a;
}

/* The segment that begins at `slot` is now m (-1: none), or its height has changed. */
static void set_segment_at(Skyline *s, int slot, int m)
{
    int k = s->n_leaves + slot;
    s->lowest[k] = m;
    for (k /= 2; k > 0; k /= 2)
        s->lowest[k] = lower_of(s, s->lowest[2 * k], s->lowest[2 * k + 1]);
    s->work->done += SLOT_STEPS;
}

/* First buffer of the list from `b` on that ends by `end`. */
static int next_fitting(const Skyline *s, int b, int end)
{
    while (b >= 0 && s->p->end[b] > end)
        b = s->next[b];
    return b;
}

/* The best unplaced buffer of every start slot inside the segment. */
static int collect_candidates(Skyline *s, const Segment *g)
{
    int n = 0;
    for (int t = g->begin; t < g->end; t++) {
        int b = next_fitting(s, s->first[t], g->end);
        if (b >= 0)
            s->candidate[n++] = b;
    }
    s->work->done += g->end - g->begin;
    return n;
}

static bool better(const Skyline *s, int a, int b)
{
    return s->rank[a] < s->rank[b];
}

HEAP_DEFINE(candidates, const Skyline, int, better, HEAP_UNTOLD)

static void best_to_front(Skyline *s, int n)
{
    int best = 0;
    for (int k = 1; k < n; k++)
        if (better(s, s->candidate[k], s->candidate[best]))
            best = k;
    int first = s->candidate[0];
    s->candidate[0] = s->candidate[best];
    s->candidate[best] = first;
}

/* IncrementalSchedule [l, r) would be closed in up to `level`: is every tight one covered by an
 * unplaced buffer (other than `except`) inside [l, r)?  A side of more than MAX_SIDE slots is taken
 * to be. */
static bool side_fillable(Skyline *s, int l, int r, int64_t level, int except)
{
    if (r - l > MAX_SIDE)
        return true;
    int64_t room = s->p->target - level;
    int tight = l;
    while (tight < r && s->remaining[tight] <= room)
        tight++;
    s->work->done += tight - l + 1;
    if (tight >= r)
        return true;
    int covered = l;
    for (int t = l; t < r; t++) {
        for (int b = s->first[t]; b >= 0; b = s->next[b]) {
            s->work->done++;
            if (b != except && s->p->end[b] <= r && s->p->end[b] > covered)
                covered = s->p->end[b];
        }
        if (covered <= t && s->remaining[t] > room)
            return false;
    }
    return true;
}

static int64_t neighbour_height(const Skyline *s, int neighbour)
{
    return neighbour < 0 ? INT64_MAX : s->segment[neighbour].height;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool leaves_room(Skyline *s, const Segment *g, int b)
{
    int64_t top = g->height + s->p->size[b];
    int64_t left = smaller(neighbour_height(s, g->prev), top);
    int64_t right = smaller(neighbour_height(s, g->next), top);
    return side_fillable(s, g->begin, s->p->start[b], left, b) &&
           side_fillable(s, s->p->end[b], g->end, right, b);
}

/* The buffer to put on segment g; -1 when none fits. */
static int choose(Skyline *s, const Segment *g)
{
    int n = collect_candidates(s, g);
    if (n == 0)
        return -1;
    best_to_front(s, n);
    int fallback = s->candidate[0];
    if (s->work->done > s->work->limit)
        return fallback;
    for (int tries = 0; tries < MAX_TRIES && n > 0; tries++) {
        int b = s->candidate[0], other = next_fitting(s, s->next[b], g->end);
        if (leaves_room(s, g, b))
            return b;
        if (tries == 0) { /* the first is mostly good */
            candidates_make(s, s->candidate, (size_t)n);
            s->work->done += n;
        }
        s->candidate[0] = other >= 0 ? other : s->candidate[--n];
        if (n > 0)
            candidates_down(s, s->candidate, (size_t)n, 0);
    }
    return fallback;
}

static void unlink_buffer(Skyline *s, int b)
{
    int *link = &s->first[s->p->start[b]];
    while (*link != b)
        link = &s->next[*link];
    *link = s->next[b];
    for (int t = s->p->start[b]; t < s->p->end[b]; t++)
        s->remaining[t] -= s->p->size[b];
}

static int new_segment(Skyline *s, int begin, int end, int64_t height, int prev, int next)
{
    int k = s->n_segments++;
    s->segment[k] = (Segment){begin, end, height, prev, next};
    if (prev >= 0)
        s->segment[prev].next = k;
    if (next >= 0)
        s->segment[next].prev = k;
    return k;
}

static void put_on_segment(Skyline *s, int m, int b)
{
    Segment *g = &s->segment[m];
    int start = s->p->start[b], end = s->p->end[b];
    s->offset[b] = g->height;
    if (g->begin < start)
        set_segment_at(s, g->begin, new_segment(s, g->begin, start, g->height, g->prev, m));
    if (end < g->end)
        set_segment_at(s, end, new_segment(s, end, g->end, g->height, m, g->next));
    g->begin = start;
    g->end = end;
    g->height += s->p->size[b];
    if (g->height > s->height)
        s->height = g->height;
    unlink_buffer(s, b);
}

/* After segment m was raised. */
static void merge_equal_neighbours(Skyline *s, int m)
{
    Segment *g = &s->segment[m];
    int prev = g->prev, next = g->next;
    if (prev >= 0 && s->segment[prev].height == g->height) {
        set_segment_at(s, g->begin, -1);
        g->begin = s->segment[prev].begin;
        g->prev = s->segment[prev].prev;
        if (g->prev >= 0)
            s->segment[g->prev].next = m;
    }
    if (next >= 0 && s->segment[next].height == g->height) {
        set_segment_at(s, s->segment[next].begin, -1);
        g->end = s->segment[next].end;
        g->next = s->segment[next].next;
        if (g->next >= 0)
            s->segment[g->next].prev = m;
    }
    set_segment_at(s, g->begin, m);
}

static Skyline *skyline_new(Pool *pool, const PlaceProblem *p, const int *order, int64_t *offset,
                            PlaceWork *work)
{
    Skyline *s = POOL_NEW(pool, Skyline);
    size_t n = (size_t)p->n, slots = (size_t)p->n_slots;
    s->p = p;
    s->work = work;
    s->offset = offset;
    s->segment = POOL_ARRAY(pool, 2 * n + 1, Segment);
    s->rank = POOL_ARRAY(pool, n, int);
    s->first = POOL_ARRAY(pool, slots, int);
    s->next = POOL_ARRAY(pool, n, int);
    s->candidate = POOL_ARRAY(pool, slots, int);
    s->remaining = POOL_ARRAY(pool, slots, int64_t);
    memcpy(s->remaining, p->load, slots * sizeof *s->remaining);
    for (int t = 0; t < p->n_slots; t++)
        s->first[t] = -1;
    s->n_leaves = 1;
    while (s->n_leaves < p->n_slots)
        s->n_leaves *= 2;
    s->lowest = POOL_ARRAY(pool, 2 * (size_t)s->n_leaves, int);
    for (int k = 0; k < 2 * s->n_leaves; k++)
        s->lowest[k] = -1;
    for (int k = p->n - 1; k >= 0; k--) {
        int b = order[k];
        s->rank[b] = k;
        s->next[b] = s->first[p->start[b]];
        s->first[p->start[b]] = b;
    }
    set_segment_at(s, 0, new_segment(s, 0, p->n_slots, 0, -1, -1));
    return s;
}

int64_t place_skyline(const PlaceProblem *p, const int *order, int64_t *offset, PlaceWork *work)
{
    Pool *pool = pool_new_child(p->scratch);
    Skyline *s = skyline_new(pool, p, order, offset, work);
    for (int left = p->n; left > 0;) {
        int m = s->lowest[1];
        int b = choose(s, &s->segment[m]);
        if (b >= 0) {
            put_on_segment(s, m, b);
            left--;
        } else {
            Segment *g = &s->segment[m];
            g->height = smaller(neighbour_height(s, g->prev), neighbour_height(s, g->next));
        }
        merge_equal_neighbours(s, m);
    }
    int64_t height = s->height;
    pool_free(pool);
    return height;
}
