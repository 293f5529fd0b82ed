/* No recomputation but what @recompute asks for: the base order, everything kept. */
#include "passes/remat/forward_view.h"
#include "passes/remat/solvers.h"

RematSchedule remat_base_schedule(Pool *pool, const RematProblem *p)
{
    RematSchedule s = {p->n_nodes, POOL_ARRAY(pool, (size_t)p->n_nodes + 1, int)};
    for (int n = 0; n < p->n_nodes; n++)
        s.node[n] = n;
    return s;
}

RematStatus remat_none(const RematProblem *p, const RematOptions *o, Pool *pool, RematSchedule *out)
{
    return candidates_finish(candidates_new(pool, forward_view_new(pool, p), o), out);
}
