/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Segments of a forward graph, Chen et al. 2016 (see chen.c). */
#ifndef SCRIMP_PASSES_REMAT_PAPERS_CHEN_H
#define SCRIMP_PASSES_REMAT_PAPERS_CHEN_H

#include "passes/remat/papers/forward_graph.h"

/* set_of[v]: the number of v's segment, from 0; the segments so far are a lower set. */
typedef void ChenSeen(void *user, bool at_articulation, const int *set_of, int n_sets);

/* Calls seen for every size of segments that is tried, with cuts at articulation points only and
 * with cuts anywhere: first for sqrt(n) segments, then for 2 and more. */
void chen_plan(Pool *pool, const ForwardGraph *g, ChenSeen *seen, void *user);

#endif
