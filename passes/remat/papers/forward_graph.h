/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A forward graph as the papers have it, (V, E, T_v, M_v): plain data that their algorithms run on.
 * Made from the forward part of a step (forward_view.h), for a schedule of it, or from a graph at
 * the granularity of a paper (forward_count.h), for the figures under the paper's own model. */
#ifndef SCRIMP_PASSES_REMAT_PAPERS_FORWARD_GRAPH_H
#define SCRIMP_PASSES_REMAT_PAPERS_FORWARD_GRAPH_H

#include "passes/remat/model/csr.h"

typedef struct ForwardGraph {
    int n;                /* vertices; u < v for every edge (u, v) */
    const double *time;   /* T_v, any one unit */
    const int64_t *bytes; /* M_v */
    Csr pred, succ;       /* distinct */
    bool has_inputs;      /* what the graph is fed with are vertices of it */
    double until;         /* seconds of the monotonic clock: families of lower sets that are not
                             done by then are left out; 0 = no such time */
} ForwardGraph;

#endif
