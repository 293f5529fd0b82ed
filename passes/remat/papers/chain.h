/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The step as a chain of stages, for algorithms that are defined on chains.  A stage is a piece of
 * the forward graph between two cuts; what crosses a cut is one tensor (its vertex is an
 * articulation point), apart from tensors that together have less than a 64th of its bytes, such as
 * masks and positions.  The backward nodes of a stage are those that read what it made on the way.
 */
#ifndef SCRIMP_PASSES_REMAT_PAPERS_CHAIN_H
#define SCRIMP_PASSES_REMAT_PAPERS_CHAIN_H

#include "passes/remat/papers/forward_view.h"

typedef struct Chain {
    const ForwardView *v;
    int n;         /* stages */
    int *stage_of; /* by problem node; -1 = late */
    Csr forward;   /* by stage: its forward nodes, ascending */
    Csr backward;  /* by stage: the others, but late ones, ascending */
    bool *crosses; /* by problem node: its outputs are what the next stage starts from */
} Chain;

/* No more than max_stages: then cuts with about equally many bytes between them are used. */
Chain *chain_new(Pool *pool, const ForwardView *v, int max_stages);

/* A list of runs that grows stage by stage. */
typedef struct StageRuns {
    const Chain *chain;
    Pool *pool;
    int *node, len, cap;
} StageRuns;

void run_forward(StageRuns *r, int first, int end); /* stages [first, end) */
void run_backward(StageRuns *r, int stage);

#endif
