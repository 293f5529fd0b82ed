/* What is placed, by parts of time: a tree over the slots, each part of which keeps what
 * lives in it sorted by offset and by top.  A buffer asks the smallest part that contains its life:
 * a short one meets a short list. */
#ifndef SCRIMP_PASSES_MEMPLAN_TIME_TREE_H
#define SCRIMP_PASSES_MEMPLAN_TIME_TREE_H

#include "passes/memplan/place_internal.h"

typedef struct TimeMark { /* an end of a placed buffer: its offset, or its top */
    int64_t at;
    int start, end, buffer;
} TimeMark;

typedef struct TimePart {
    TimeMark *bottom, *top; /* by `at`, then by buffer */
    int n;
} TimePart;

typedef struct TimeTree {
    const PlaceProblem *p;
    PlaceWork *work;
    int n_leaves, n_parts;
    TimePart *part;         /* 1 is the root; the children of k are 4k-2 to 4k+1 */
    TimeMark *bottom, *top; /* what time_tree_load sorts */
} TimeTree;

TimeTree *time_tree_new(Pool *pool, const PlaceProblem *p, PlaceWork *work);
/* Puts exactly these in, at offset[] by buffer. */
void time_tree_load(TimeTree *t, const int *buffers, int n, const int64_t *offset);
void time_tree_add(TimeTree *t, int b, int64_t offset);
/* b was added at this offset. */
void time_tree_remove(TimeTree *t, int b, int64_t offset);
/* The smallest part that contains the life of b; valid until the tree changes. */
const TimePart *time_tree_part(const TimeTree *t, int b);

#endif
