/* The dynamic program of Kusumoto et al. 2019 (equations 1 and 2, algorithm 1) over a family of
 * lower sets. Called by the solvers named after the paper, and tested against enumeration. */
#ifndef SCRIMP_PASSES_REMAT_KUSUMOTO_DP_H
#define SCRIMP_PASSES_REMAT_KUSUMOTO_DP_H

#include "ir/support/bitset.h"
#include "passes/remat/forward_view.h"

/* One member of the family, with the terms of equations 1 and 2 that depend on it alone. */
typedef struct LowerSet {
    Bitset nodes;
    int size;
    double time;
    int64_t bytes, after; /* after: M(d+(L) \ L) + M(d-(d+(L)) \ L) */
    int64_t boundary_bytes;
    int *boundary, n_boundary;
} LowerSet;

/* From one set to a larger one. */
typedef struct Block {
    int to, units;        /* units: T(V' \ boundary of L'), quantised */
    int64_t need, cached; /* need: 2 M(V') + after(L');  cached: M(boundary(L') \ L) */
} Block;

typedef struct Family {
    const ForwardView *v;
    Pool *pool;
    LowerSet *set; /* ascending size; 0 is empty, n - 1 is V */
    int n, units;
    Block *block;
    int *block_begin;
} Family;

/* The ancestor sets {L^v}, the empty set and V; past 1,000 sets those with the smallest boundaries.
 * O(n^2 + pairs * n / 64). */
Family *kusumoto_family(Pool *pool, const ForwardView *v);

/* The smallest budget of equation 2 for which the family has a sequence, within a thousandth (and
 * at most that much above it). */
int64_t kusumoto_smallest_budget(const Family *f);

/* A sequence with the least overhead (equation 1, quantised to f->units) within the budget, or,
 * memory-centric, the largest.  set_of[u]: the number of the first set that holds u.  Returns the
 * number of sets, 0 = impossible. */
int kusumoto_solve(const Family *f, int64_t budget, bool memory_centric, int *set_of);

#endif
