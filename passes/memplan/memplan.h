/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Static placement of buffers with known lives in one arena (dynamic storage allocation).
 * Plain data in, plain data out; see docs/memory-plan.md. */
#ifndef SCRIMP_PASSES_MEMPLAN_MEMPLAN_H
#define SCRIMP_PASSES_MEMPLAN_MEMPLAN_H

#include "ir/graph.h"

enum { MEMPLAN_ALIGN = 64 };
/* Steps of branch and bound where an arena misses its bound. */
enum { MEMPLAN_EXACT_STEPS = 150000000, MEMPLAN_TRIAL_STEPS = MEMPLAN_EXACT_STEPS / 10 };
/* For memplan_place_within: a skyline and one search from large to small, no branch and bound. */
enum { MEMPLAN_SKETCH = -1 };
/* A plan that is kept, or one of many that are tried: with less effort, never lower. */
typedef enum MemEffort { MEMPLAN_FINAL, MEMPLAN_TRIAL } MemEffort;

/* Lives in [lower, upper), upper > lower. */
typedef struct MemBuffer {
    int64_t lower, upper, size;
} MemBuffer;

typedef struct MemLayout {
    int64_t *offset;           /* by buffer */
    int64_t arena_bytes;       /* max of offset + size */
    int64_t lower_bound_bytes; /* max over time of the sizes alive: no placement is smaller */
} MemLayout;

/* Equal sizes by colouring; from large to small by ejection search; from tight to loose by branch
 * and bound, then ejection; skyline with lookahead and first fit, squeaky wheel over nine orders;
 * branch and bound for up to 2,000 buffers.
 * Deterministic; bounded by iterations.  Sizes are placed as given (round them first); size 0 gets
 * offset 0. align: every offset is a multiple of it (sizes must be, too). */
MemLayout memplan_place(Pool *pool, const MemBuffer *buffers, int n, int64_t align);
/* The same with so many steps of branch and bound at the end; with less than MEMPLAN_EXACT_STEPS,
 * one round of the heuristics; with MEMPLAN_SKETCH, only the first of them, in about an eighth of
 * the time. */
MemLayout memplan_place_within(Pool *pool, const MemBuffer *buffers, int n, int64_t align,
                               int64_t exact_steps);
/* What has been placed with what effort: plans that are tried are made again when they are kept.
 * Two sets of buffers that share 128 bits of hash would be confused, and memplan_graph_check would
 * say so. */
typedef struct PlacementCache PlacementCache;
/* n_threads: on how many memplan_graph places; 0 = all cores.  Layouts do not depend on it. */
PlacementCache *placement_cache_new(Pool *pool, int n_threads);
int placement_cache_threads(const PlacementCache *cache);
/* On pool.  False: it is not there. */
bool placement_cache_find(const PlacementCache *cache, Pool *pool, const MemBuffer *buffers, int n,
                          int64_t exact_steps, MemLayout *out);
void placement_cache_add(PlacementCache *cache, const MemBuffer *buffers, int n,
                         int64_t exact_steps, const MemLayout *layout);
/* Independent sweep: no two buffers alive together overlap, arena_bytes is right.  false and a
 * message otherwise. */
bool memplan_check(Pool *pool, const MemBuffer *buffers, int n, const MemLayout *layout,
                   const char **fault);

/* The plan of a step graph in its order.  Persistent tensors come first, at offset 0. */
typedef struct MemPlan {
    int64_t *offset; /* by ValueId; -1: the value has no storage (bodies, folded constants) */
    int64_t *workspace_offset; /* by NodeId; -1: none */
    int64_t persistent_bytes, arena_bytes, lower_bound_bytes;
    int64_t peak_bytes;     /* max load of the step in this order, with persistent tensors: equals
                               lower_bound_bytes */
    int64_t appended_bytes; /* of arena_bytes: behind what was planned (passes/checksum.h) */
    NodeId peak_node;
    int n_in_place;
    /* What was placed beside the persistent tensors; only MEMPLAN_FINAL fills it in. */
    int n_buffers;
    struct PlannedBuffer *buffer;
    int *buffer_of; /* by ValueId; -1: persistent, or no storage */
} MemPlan;

/* Values that share their bytes, or the workspace of an operation. */
typedef struct PlannedBuffer {
    MemBuffer life; /* in operations that run */
    int64_t offset; /* in the arena; -1: it has no place yet */
    ValueId value;  /* the first in it; VALUE_NONE: a workspace */
    NodeId node;    /* whose workspace it is; NODE_NONE: a value's */
} PlannedBuffer;

/* To the next multiple of MEMPLAN_ALIGN. */
int64_t memplan_rounded(int64_t bytes);
/* What a value takes in the arena: rounded up to MEMPLAN_ALIGN. */
int64_t memplan_value_bytes(const Graph *g, ValueId v);
/* False when all sizes together pass 2^60 bytes: sums in plans and schedules are not checked one by
 * one. */
bool memplan_is_countable(const Graph *g);

/* View groups and in-place pairs share a buffer.  The same in-place rule as remat_check, so that
 * the load equals its peak.  cache: NULL remembers nothing, and places on one thread. */
MemPlan *memplan_graph(Pool *pool, const Graph *g, MemEffort effort, PlacementCache *cache);
/* What such a plan starts from, with everything in place that may be: for passes that weigh lives
 * against each other.  Time is counted in slots, one for each operation that runs. */
typedef struct MemLives {
    int n_slots;
    int *slot_of;      /* by NodeId; -1 = does not run */
    int *birth, *last; /* by value_root: slots of the first write and the last read */
    ValueId *over;     /* by value_root: the root that it is written over, or VALUE_NONE */
    int64_t persistent_bytes;
    int64_t *load; /* by slot: bytes alive, without persistent tensors */
    int peak_slot; /* the first with the largest load */
    int n_buffers;
    PlannedBuffer *buffer; /* without places */
    int *buffer_of;        /* as in MemPlan */
} MemLives;
MemLives memplan_lives(Pool *pool, const Graph *g);

/* Re-derives lives from the graph without memplan's code and checks that no two live values
 * overlap, except views and in-place pairs that are legal, and that persistent tensors sit still.
 */
bool memplan_graph_check(Pool *scratch, const Graph *g, const MemPlan *plan, const char **fault);

#endif
