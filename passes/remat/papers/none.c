/* SPDX-License-Identifier: GPL-3.0-or-later */
/* No recomputation but what @recompute asks for: the base order, everything kept. */
#include "passes/remat/papers/candidates.h"
#include "passes/remat/papers/forward_view.h"
#include "passes/remat/solvers.h"

RematStatus remat_none(const RematProblem *p, const RematOptions *o, Pool *pool, RematSchedule *out)
{
    return candidates_finish(candidates_new(pool, forward_view_new(pool, p), o), out);
}
