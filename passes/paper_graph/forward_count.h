/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A paper's graph of a forward pass (paper_graph.h) in the forms that are solved: as the algorithms
 * of the papers take it, and as a graph that can be planned and written. */
#ifndef SCRIMP_PASSES_PAPER_GRAPH_FORWARD_COUNT_H
#define SCRIMP_PASSES_PAPER_GRAPH_FORWARD_COUNT_H

#include "passes/paper_graph/paper_graph.h"
#include "passes/remat/external/external.h"
#include "passes/remat/papers/forward_graph.h"

/* M_v: the bytes of a vertex; T_v: 10 for convolutions, 1 for all else (Kusumoto et al. 2019,
 * section 3).  Shares nothing with `c`. */
ForwardGraph forward_graph_of_count(Pool *pool, const PaperGraph *c);

/* A forward pass at the granularity of a paper: node v is vertex v, its time Kusumoto's (10 for
 * convolutions, 0 for inputs, 1 for all else); what nobody reads is kept.  Shares names with c. */
ExternalGraph *external_from_count(Pool *pool, const PaperGraph *c);

#endif
