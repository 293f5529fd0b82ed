/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Maximum flow and minimum cut in a directed network with integer capacities (Dinic 1970: blocking
 * flows in level graphs; O(V^2 E), near linear on the shallow networks of the bounds).  Called by
 * the bounds of rematerialization. */
#ifndef SCRIMP_PASSES_REMAT_BOUNDS_MAX_FLOW_H
#define SCRIMP_PASSES_REMAT_BOUNDS_MAX_FLOW_H

#include "ir/support/pool.h"

/* The capacity that no cut may pay for.  Finite capacities must sum to less. */
#define FLOW_INFINITE ((int64_t)1 << 62)

typedef struct FlowNetwork FlowNetwork;

FlowNetwork *flow_new(Pool *pool);
int flow_vertex(FlowNetwork *net);                 /* the vertices are 0, 1, ... */
int flow_edge(FlowNetwork *net, int from, int to); /* the edges are 0, 1, ...; capacity 0 */
int flow_n_edges(const FlowNetwork *net);
void flow_set_capacity(FlowNetwork *net, int edge, int64_t capacity);

/* The value of a maximum flow, from no flow; FLOW_INFINITE when no finite cut exists.  Adds the
 * arcs that were looked at to *work. */
int64_t flow_max(FlowNetwork *net, int source, int sink, int64_t *work);

/* After flow_max: does the edge cross the minimum cut that lies nearest to the sink? */
bool flow_in_cut(const FlowNetwork *net, int edge);

#endif
