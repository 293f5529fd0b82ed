/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers at 0 .. n-1 that are added to over ranges, and the largest of any range: a segment tree.
 * Every operation is O(log n), where nothing else is said.  Bytes alive at each place of a
 * schedule, for instance. */
#ifndef SCRIMP_IR_SUPPORT_RANGE_MAX_H
#define SCRIMP_IR_SUPPORT_RANGE_MAX_H

#include "ir/support/pool.h"

typedef struct RangeMax {
    int leaves;     /* a power of two */
    int64_t *most;  /* by tree node, the root being 1: the largest below it */
    int64_t *added; /* to everything below it, and in `most` already */
} RangeMax;

/* All zero, or numbers[0 .. n-1].  O(n). */
RangeMax range_max_new(Pool *pool, int n);
RangeMax range_max_of(Pool *pool, const int64_t *numbers, int n);
/* Nothing when first > last. */
void range_max_add(RangeMax *t, int first, int last, int64_t value);
int64_t range_max_most(const RangeMax *t, int first, int last);
/* The first place that has the largest number. */
int range_max_argmost(const RangeMax *t);
/* next[i]: the first place >= i with a number above `limit`; n when there is none.  O(n). */
void range_max_above(const RangeMax *t, int64_t limit, int *next, int n);

#endif
