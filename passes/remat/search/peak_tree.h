/* Numbers at 0 .. n-1 that are added to over ranges, and the largest of any range: a segment tree.
 * Every operation is O(log n).  Used by slots.c for the bytes alive at each place of a schedule. */
#ifndef SCRIMP_PASSES_REMAT_SEARCH_PEAK_TREE_H
#define SCRIMP_PASSES_REMAT_SEARCH_PEAK_TREE_H

#include "ir/support/pool.h"

typedef struct PeakTree {
    int leaves;     /* a power of two */
    int64_t *most;  /* by tree node, the root being 1: the largest below it */
    int64_t *added; /* to everything below it, and in `most` already */
} PeakTree;

/* All zero. */
PeakTree peak_tree_new(Pool *pool, int n);
/* Nothing when first > last. */
void peak_tree_add(PeakTree *t, int first, int last, int64_t value);
int64_t peak_tree_most(const PeakTree *t, int first, int last);
/* The first place that has the largest number. */
int peak_tree_argmost(const PeakTree *t);
/* next[i]: the first place >= i with a number above `limit`; n when there is none.  O(n). */
void peak_tree_above(const PeakTree *t, int64_t limit, int *next, int n);

#endif
