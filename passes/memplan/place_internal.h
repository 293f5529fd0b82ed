/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the placement algorithms share: one component of the problem with compressed time, and a
 * count of elementary steps, so that the effort is bounded without looking at a clock. */
#ifndef SCRIMP_PASSES_MEMPLAN_PLACE_INTERNAL_H
#define SCRIMP_PASSES_MEMPLAN_PLACE_INTERNAL_H

#include "passes/memplan/memplan.h"

/* Buffers that are connected through time; buffer i lives in slots [start[i], end[i]). */
typedef struct PlaceProblem {
    Pool *scratch;
    int n, n_slots;
    int *start, *end;
    int64_t *size;     /* > 0 */
    int64_t *load;     /* by slot: bytes alive */
    int64_t *max_load; /* by buffer: largest load over its life */
    int64_t bound;     /* max of load */
    int64_t target;    /* a height that is good enough: the bound of the whole problem */
} PlaceProblem;

/* Steps done so far and where extra effort stops. */
typedef struct PlaceWork {
    int64_t done, limit;
} PlaceWork;

/* Compresses the lives of `index[0..n)` of buffers into slots: a slot begins only at a birth that
 * follows a death, because between those the load only grows.  O(n log n). */
PlaceProblem *place_compress(Pool *scratch, const MemBuffer *buffers, const int *index, int n);

int64_t place_height(const PlaceProblem *p, const int64_t *offset);
/* The greatest common divisor of the sizes.  Offsets are sums of sizes: multiples of it. */
int64_t place_unit(const PlaceProblem *p);

/* Each fills offset[] by buffer and returns the height.  order: highest priority first. */
int64_t place_skyline(const PlaceProblem *p, const int *order, int64_t *offset, PlaceWork *work);
int64_t place_first_fit(const PlaceProblem *p, const int *order, int64_t *offset, PlaceWork *work);
/* The order by keys, each descending: T max load, Z size, W life, A area. */
void place_order(const PlaceProblem *p, const char *keys, int *order);
/* Moves entries of the order by a few places. */
void place_shuffle(int *order, int n, uint64_t seed);

/* Lowers the layout offset[] towards `floor`, to multiples of `unit`, until it is reached or
 * work->limit; the height. */
int64_t place_eject(const PlaceProblem *p, int64_t *offset, int64_t floor, int64_t unit,
                    uint64_t seed, PlaceWork *work);
/* A layout from the large buffers to the small by ejection searches, until p->target is reached or
 * work->limit; the height. */
int64_t place_levels(const PlaceProblem *p, int64_t *offset, uint64_t seed, PlaceWork *work);

/* Puts the layout offset[] within the limit; false, with nothing changed, when work->limit comes
 * first. */
bool place_eject_within(const PlaceProblem *p, int64_t *offset, int64_t limit, uint64_t seed,
                        PlaceWork *work);

/* Small buffers packed together: the packed and the other ones as buffers of `problem`. */
typedef struct PlaceBundles {
    PlaceProblem *problem;
    int *whole_of;  /* by buffer: the buffer of `problem` it is in */
    int64_t *inner; /* by buffer: its offset in there */
} PlaceBundles;
/* Of buffers smaller than `below`; problem->bound is <= limit.  p->bound <= limit. */
PlaceBundles *place_bundle(Pool *pool, const PlaceProblem *p, int64_t limit, int64_t below,
                           PlaceWork *work);
/* A layout of height <= limit, from the tightest buffers outwards; false when this attempt, with
 * its way to go about it, finds none.  p->bound <= limit; at most INT16_MAX slots. */
bool place_tight_first(const PlaceProblem *p, int64_t limit, int attempt, int64_t *offset,
                       PlaceWork *work);

/* Marsaglia's xorshift; the state must not be 0. */
static inline uint64_t place_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 11;
}

typedef enum PlaceOutcome {
    PLACE_FOUND,
    PLACE_IMPOSSIBLE, /* there is no such layout */
    PLACE_UNKNOWN     /* work->limit was reached */
} PlaceOutcome;

/* Is there a layout of height <= limit?  Fills offset[] when found, and only then.  order decides
 * what is tried first.  Recursion as deep as twice n: for a few thousand buffers. */
PlaceOutcome place_branch_bound(const PlaceProblem *p, const int *order, int64_t limit,
                                int64_t *offset, PlaceWork *work);
/* Lowers *height, of the layout offset[], and raises *lower, below which there is no layout worth
 * having, until they meet or `steps` more are done. */
void place_exact(const PlaceProblem *p, int64_t *offset, int64_t *height, int64_t *lower,
                 int64_t steps);

/* Buffers of one size: interval colouring, exactly at the bound.  False when sizes differ. */
bool place_color(const PlaceProblem *p, int64_t *offset, int64_t *height);

#endif
