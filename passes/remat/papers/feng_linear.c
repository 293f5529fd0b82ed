/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checkpoints of a chain.
 *
 * Source: Feng and Huang 2018 and 2021, algorithm 1: for each max term C the accessibility graph,
 * whose edges join vertices with at most C between them, and its shortest path.  Errata: see
 * feng.h. Differs: other graphs are chains of their splitting vertices, with what is between two of
 * them folded into the edge (2018, theorem 3); a window over the chain takes the place of the
 * explicit graph, and max terms with the same answer are skipped (2018, line 7). */
#include "passes/remat/papers/feng.h"
#include "passes/remat/solvers.h"

RematStatus remat_feng_linear(const RematProblem *p, const RematOptions *o, Pool *pool,
                              RematSchedule *out)
{
    return feng_schedule(FENG_SPLIT, p, o, pool, out);
}
