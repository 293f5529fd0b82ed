/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The order of operations with the smallest peak, each running once.  Called by pass_order on the
 * step as it stands and by pass_remat on a step with its recomputations. */
#ifndef SCRIMP_PASSES_REMAT_ORDER_REORDER_H
#define SCRIMP_PASSES_REMAT_ORDER_REORDER_H

#include "passes/remat/model/csr.h"
#include "passes/remat/model/problem.h"

/* Who must run before whom: producers before readers, readers of an old version before the node
 * that overwrites it. */
typedef struct NodeGraph {
    Csr pred, succ; /* by node; may name a node twice */
    Csr readers;    /* by tensor */
} NodeGraph;

NodeGraph *node_graph_new(Pool *pool, const RematProblem *p);

/* Next to nothing comes of node n in memory, compared with so many bytes: an update, a norm. */
bool node_makes_little(const RematProblem *p, int n, int64_t against);

/* The base order, in which what is not of the backward pass waits until that, or the end, needs it.
 */
void reorder_on_demand(Pool *scratch, const RematProblem *p, const NodeGraph *g, int *order);

/* The best of the base order, greedy orders, a depth-first order and one on demand by remat_check's
 * peak (ties: the fewest bytes times runs alive, then the earliest), refined by list scheduling
 * under caps down to good_enough_bytes and by reorder_windows.  O(nodes * ready nodes),
 * deterministic where `until`, in seconds of the monotonic clock (0 = no limit), does not end it
 * early, with the best so far. */
RematSchedule reorder_nodes(Pool *pool, const RematProblem *p, int64_t good_enough_bytes,
                            double until);

/* `until` has passed. */
bool reorder_out_of_time(double until);

/* Exact search over the orders of short windows around the peak, repeated while it helps and
 * there is time.  Changes s in place and returns its peak. */
int64_t reorder_windows(Pool *scratch, const RematProblem *p, const NodeGraph *g, RematSchedule *s,
                        int64_t good_enough_bytes, double until);

/* No order has a smaller peak (without recomputation).  O(tensors * nodes / 64); 0 past 4,000
 * nodes, where the sets would cost more than the windows. */
int64_t reorder_bound(Pool *scratch, const RematProblem *p, const NodeGraph *g);

#endif
