/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Approximate dynamic programming over lower sets.
 *
 * Source: Kusumoto et al. 2019, section 4.3 and algorithm 1: the sets are {L^v}, the ancestors of v
 * with v; the empty set and V are added.  Errata: see kusumoto.h.  Differs: past 1,000 sets those
 * with the smallest boundaries are used; real times are quantised to at most 4,096 units (fewer for
 * large graphs, so that blocks times units stay below 8e6). */
#include "passes/remat/papers/kusumoto.h"
#include "passes/remat/solvers.h"

const KusumotoMethod kusumoto_approx = {1000000000, kusumoto_family_ancestors,
                                        kusumoto_smallest_budget, kusumoto_solve};

RematStatus remat_kusumoto_approx(const RematProblem *p, const RematOptions *o, Pool *pool,
                                  RematSchedule *out)
{
    return kusumoto_schedule(&kusumoto_approx, p, o, pool, out);
}
