/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checkpoints in close sets.
 *
 * Source: Feng and Huang 2018, algorithms 2 to 6.  It differs from feng_acg in the split of what
 * neither splits nor branches: a pair of vertices makes a close set only when nothing that is
 * between them leaks (algorithm 4 as printed), so that where it does, every vertex becomes a
 * checkpoint. Errata: see feng.h. */
#include "passes/remat/papers/feng.h"
#include "passes/remat/solvers.h"

RematStatus remat_feng_closeset(const RematProblem *p, const RematOptions *o, Pool *pool,
                                RematSchedule *out)
{
    return feng_schedule(FENG_CLOSED, p, o, pool, out);
}
