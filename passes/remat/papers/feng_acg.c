/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checkpoints of arbitrary graphs.
 *
 * Source: Feng and Huang 2021, algorithms 2 to 6: the division tree of linear, branch and
 * complicate segments, and for each max term C the accessibility graph of what need not be broken.
 * Errata: see feng.h; with them its answer is the optimum of the paper's objective, which the tests
 * compare with enumeration.  That optimum is not the step's: on the chain of sizes [13, 13, 1, 8,
 * 13, 13] it costs 35 where another choice really peaks at 27, and where no pair of vertices
 * separates the graph, as in an unrolled LSTM, it saves next to nothing. */
#include "passes/remat/papers/feng.h"
#include "passes/remat/solvers.h"

RematStatus remat_feng_acg(const RematProblem *p, const RematOptions *o, Pool *pool,
                           RematSchedule *out)
{
    return feng_schedule(FENG_STRIPPED, p, o, pool, out);
}
