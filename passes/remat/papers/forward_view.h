/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The forward part of a step as the graph (V, E, T_v, M_v) of the papers, and the way from their
 * answer, which nodes to keep, back to a schedule of the whole step.
 *
 * The mapping.  A forward node that is not kept loses its outputs after their last use in the
 * forward pass (the base order's reads by forward nodes, running statistics and metrics).  The
 * first later node that needs one has it recomputed just before it, together with those of its
 * ancestors that are gone; from then on it stays until liveness frees it.  So a node runs at most
 * twice.  Nodes that overwrite a weight wait until the last recomputation that reads the old
 * version. */
#ifndef SCRIMP_PASSES_REMAT_PAPERS_FORWARD_VIEW_H
#define SCRIMP_PASSES_REMAT_PAPERS_FORWARD_VIEW_H

#include "passes/remat/model/problem.h"
#include "passes/remat/papers/forward_graph.h"

typedef struct ForwardView {
    const RematProblem *p;
    int n;
    int *node;      /* view -> problem node, ascending: a topological order */
    int *index;     /* problem node -> view, -1 = not forward */
    double *cost;   /* T_v */
    int64_t *bytes; /* M_v: all outputs */
    Csr pred, succ; /* distinct */
    int *turn;  /* by problem tensor: base position of its last forward use; -1 = never dropped */
    bool *late; /* by problem node: overwrites something, or depends on a node that does */
} ForwardView;

ForwardView *forward_view_new(Pool *pool, const RematProblem *p);

/* The view for algorithms that know of no step.  Shares the view's arrays. */
ForwardGraph forward_view_graph(const ForwardView *v);

/* keep: by view node. */
RematSchedule forward_view_schedule(Pool *pool, const ForwardView *v, const bool *keep);

#endif
