/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Exact dynamic programming over all lower sets.
 *
 * Source: Kusumoto et al. 2019, section 4.2 and algorithm 1.  Errata: see kusumoto.h.  Differs:
 * with more than sqrt(max_steps) lower sets it is the approximate algorithm (4.3) and has the
 * status `limit`, as it has when the steps run out; real times are quantised to 4,096 units. */
#include "passes/remat/papers/kusumoto.h"
#include "passes/remat/solvers.h"

const KusumotoMethod kusumoto_exact = {1000000000, kusumoto_family_all, kusumoto_smallest_budget,
                                       kusumoto_solve};

RematStatus remat_kusumoto_exact(const RematProblem *p, const RematOptions *o, Pool *pool,
                                 RematSchedule *out)
{
    return kusumoto_schedule(&kusumoto_exact, p, o, pool, out);
}
