/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is placed, sorted by offset and by top.  Lives stand in arrays of 16-bit numbers of their
 * own: which of a few thousand buffers meet a life is found eight at a time. */
#ifndef SCRIMP_PASSES_MEMPLAN_PLACED_ENDS_H
#define SCRIMP_PASSES_MEMPLAN_PLACED_ENDS_H

#include "ir/support/sort.h"
#include "passes/memplan/place_internal.h"

/* One end of every placed buffer, by `at`, then by buffer. */
typedef struct EndList {
    int64_t *at; /* its offset, or its top */
    int16_t *start, *end;
    int *buffer;
    int n;
} EndList;

typedef struct PlacedEnds {
    const PlaceProblem *p;
    PlaceWork *work;
    EndList bottom, top;
    uint8_t *meets; /* by position */
    Ranked *item;   /* what placed_load sorts */
} PlacedEnds;

/* Nothing is placed.  p has at most INT16_MAX slots. */
PlacedEnds *placed_new(Pool *pool, const PlaceProblem *p, PlaceWork *work);
/* Puts exactly these in, at offset[] by buffer.  O(n log n). */
void placed_load(PlacedEnds *s, const int *buffers, int n, const int64_t *offset);
void placed_add(PlacedEnds *s, int b, int64_t offset);
/* b was added at this offset. */
void placed_remove(PlacedEnds *s, int b, int64_t offset);
/* Positions in the list of what lives at a time with b, ascending; how many.  position: room for
 * list->n + 1. */
int placed_meeting(PlacedEnds *s, const EndList *list, int b, int *position);

#endif
