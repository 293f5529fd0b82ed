/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the two halves of a schedule under construction share: incremental_schedule.c keeps runs and
 * lifetimes, incremental_inside.c recounts what happens inside a slot. */
#ifndef SCRIMP_PASSES_REMAT_SEARCH_INCREMENTAL_SCHEDULE_INTERNAL_H
#define SCRIMP_PASSES_REMAT_SEARCH_INCREMENTAL_SCHEDULE_INTERNAL_H

#include "ir/support/range_max.h"
#include "passes/remat/model/csr.h"
#include "passes/remat/search/incremental_schedule.h"

#include "ir/support/vec.h"

/* Where a run stands: slot * (n + 1) + node.  A first run comes after all recomputations of its
 * slot, because those are of nodes before it. */
typedef int64_t Key;

/* The runs of one node, ascending by slot, and for each output of each when it is read last. */
typedef struct Runs {
    int n, room;
    int *slot;
    Key *end; /* [run * n_out + k] */
} Runs;

typedef struct SlotRuns {
    int n, room;
    int *node; /* recomputations, ascending */
} SlotRuns;

typedef struct Change {
    int node, slot;
    bool added;
} Change;

struct IncrementalSchedule {
    Pool *pool;
    const RematProblem *p;
    int n;
    Runs *runs;           /* by node */
    SlotRuns *slot;       /* by slot */
    Csr readers;          /* tensor -> nodes that read it */
    int *out_index;       /* tensor -> which output of its producer */
    int *last_slot;       /* node -> the last slot its operands are still what they were */
    Key *batch_end;       /* tensor without a producer, not persistent: when it is read last */
    int64_t constant;     /* persistent bytes */
    int64_t unread_batch; /* batch inputs that nothing reads: there until node 0 has run */
    RangeMax through;     /* by slot: the most bytes alive in it */
    int64_t *inside;      /* by slot: the most of what begins or ends in it */
    bool *dirty;
    VEC(int) dirty_list;
    VEC(Change) log;
    double time;
    int recomputed;
    int64_t work;
    bool *in_merged, *out_merged, *dies;
};

static inline Key key_of(const IncrementalSchedule *s, int node, int slot)
{
    return (Key)slot * (s->n + 1) + node;
}

static inline int slot_of(const IncrementalSchedule *s, Key key)
{
    return (int)(key / (s->n + 1));
}

static inline Key end_key(const IncrementalSchedule *s)
{
    return key_of(s, 0, s->n);
}

static inline bool counts(const IncrementalSchedule *s, int tensor)
{
    return !s->p->tensor[tensor].persistent && s->p->tensor[tensor].bytes > 0;
}

/* The last of the runs of `node` in a slot before `slot`, or at it when node < limit; -1 = none. */
static inline int run_before_key(const IncrementalSchedule *s, int node, Key before)
{
    const Runs *r = &s->runs[node];
    int lo = -1, hi = r->n; /* slot[lo] is before, slot[hi] is not */
    if (r->n == 1)
        return key_of(s, node, r->slot[0]) < before ? 0 : -1;
    while (hi - lo > 1) {
        int mid = (lo + hi) / 2;
        if (key_of(s, node, r->slot[mid]) < before)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

#endif
