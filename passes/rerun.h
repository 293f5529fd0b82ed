/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Why a planned step runs an operation again: what the step would be without that run.
 *
 * Without a run, its readers read what the run before it of the same operation has made, which then
 * lives on; recomputations that only it has read are gone, too.  Bytes are those of the planner's
 * lives (memplan_lives): views, pieces inside of others and results written over inputs share their
 * bytes.  Plain data out; docs/remat.md says how it is shown. */
#ifndef SCRIMP_PASSES_RERUN_H
#define SCRIMP_PASSES_RERUN_H

#include "passes/memplan/memplan.h"

/* Slots count the operations of the step that run. */
typedef struct RerunEffect {
    NodeId node, before;   /* the run; the one before it of the same operation */
    int slot, before_slot; /* of the two */
    int64_t bytes;         /* results of `before` that are not in memory ... */
    int from, to;          /* ... in slots [from, to); to is the run itself; from = to: none are */
    bool spans_peak;       /* the first slot with the largest load is one of them */
    int64_t without_peak_bytes; /* largest load without the run, with persistent tensors */
    ValueId *instead;           /* what lives on without it, largest first */
    int n_instead;
} RerunEffect;

typedef struct RerunEffects {
    RerunEffect *effect; /* in the order of the step */
    int n;
} RerunEffects;

/* Of every recomputation in the order of a step, which may have been through `views`. On pool;
 * takes time O(recomputations x operations). */
RerunEffects rerun_effects(Pool *pool, const Graph *g);

/* Of one of them. */
RerunEffect rerun_effect(Pool *pool, const Graph *g, NodeId run);

/* The run before `run` of the same operation in the order of g; NODE_NONE: it is the first one (of
 * a slice, after what has only named a piece), a view, or not in the order. */
NodeId rerun_before(const Graph *g, NodeId run);

/* The operation of which a node is a run: its first one. */
NodeId rerun_first(const Graph *g, NodeId run);

/* The step without one of its recomputations.  The copy shares with g what is the same (names,
 * bodies, attributes) and must not outlive it. */
Graph *rerun_without(Pool *pool, const Graph *g, NodeId run);

#endif
