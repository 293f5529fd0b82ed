/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rematerialization as plain data: problem -> solver -> schedule -> independent check -> apply.
 * Solvers see no IR.  See docs/remat.md and the papers named at each solver.
 *
 * Bytes are those of the arena: every size is already rounded up to MEMPLAN_ALIGN by whoever builds
 * the problem; persistent tensors count throughout. */
#ifndef SCRIMP_PASSES_REMAT_MODEL_PROBLEM_H
#define SCRIMP_PASSES_REMAT_MODEL_PROBLEM_H

#include "ir/graph.h"

typedef struct RematTensor {
    int64_t bytes;
    int producer;    /* node, or -1: exists before the first node runs (batch inputs, persistent
                        tensors) */
    bool persistent; /* counted throughout, never freed */
    bool keep;       /* its last version lives to the end (loss, metrics) */
    const char *name;
} RematTensor;

/* Output position `out` may be written over input position `in` when that input dies at this run
 * (and is neither persistent nor keep).  Only offered for equal sizes.  First legal pair in order
 * wins; an input and an output take part at most once. */
typedef struct RematInPlace {
    int out, in;
} RematInPlace;

typedef struct RematNode {
    const char *name;
    double cost;       /* time, any one unit */
    int64_t workspace; /* bytes alive only while it runs; below 0 in relaxed problems */
    bool rerun;        /* may run more than once */
    bool forward; /* belongs to the forward part (defines the forward view of chen and kusumoto) */
    RematHint
        hint; /* @keep: never run twice;  @recompute: its outputs must not live across the loss */
    int n_in, n_out, n_in_place, n_overwrites;
    int *in;  /* tensors read, distinct */
    int *out; /* tensors made */
    RematInPlace *in_place;
    int *overwrites; /* tensors whose value is gone once this node has run (the old version of a
                        weight); the outputs that take their place have bytes = 0 */
} RematNode;

typedef struct RematProblem {
    Pool *pool;
    int n_nodes, n_tensors;
    RematNode *node; /* in the base order, which is valid */
    RematTensor *tensor;
    int64_t persistent_bytes;
    int loss_node; /* node that makes the loss; -1 when there is none */
} RematProblem;

typedef struct RematSchedule {
    int len;
    int *node; /* executions in order; nodes may appear several times */
} RematSchedule;

/* What the independent replay finds (check.c).  It shares no code with the solvers, and only these
 * numbers are ever reported. */
typedef struct RematFigures {
    bool ok;
    const char *fault;      /* why not ok */
    int64_t peak_bytes;     /* with persistent tensors */
    int peak_at;            /* index into the schedule */
    double time, time_once; /* cost of the schedule; cost of every node once */
    int recomputed;         /* executions beyond the first of each node */
} RematFigures;

/* Replays a schedule: every node runs at least once; a read takes the latest run and must find it;
 * a node that may not be run again is not; a recomputation reads the same version of overwritten
 * tensors as the first run did; at each run inputs, outputs and workspace are alive together
 * (in-place pairs honoured); a value dies after its last read, an unread one right after its node.
 * O(total reads). */
RematFigures remat_check(Pool *scratch, const RematProblem *p, const RematSchedule *s);

#endif
