/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Schedules that solvers begin with, and what @keep and @recompute ask of them. */
#include "passes/remat/model/schedule.h"

RematSchedule remat_base_schedule(Pool *pool, const RematProblem *p)
{
    RematSchedule s = {p->n_nodes, POOL_ARRAY(pool, (size_t)p->n_nodes + 1, int)};
    for (int n = 0; n < p->n_nodes; n++)
        s.node[n] = n;
    return s;
}

static bool has_hints(const RematProblem *p)
{
    for (int n = 0; n < p->n_nodes; n++)
        if (p->node[n].hint != REMAT_AUTO)
            return true;
    return false;
}

bool remat_obeys_hints(Pool *scratch, const RematProblem *p, const RematSchedule *s)
{
    if (!has_hints(p))
        return true;
    bool *before = POOL_ARRAY(scratch, (size_t)p->n_tensors + 1, bool), after_loss = false;
    bool *ran = POOL_ARRAY(scratch, (size_t)p->n_nodes + 1, bool);
    for (int i = 0; i < s->len; i++) {
        const RematNode *node = &p->node[s->node[i]];
        if (node->hint == REMAT_KEEP && ran[s->node[i]])
            return false;
        ran[s->node[i]] = true;
        for (int k = 0; k < node->n_in && after_loss; k++) {
            int producer = p->tensor[node->in[k]].producer;
            if (before[node->in[k]] && producer >= 0 && p->node[producer].hint == REMAT_RECOMPUTE)
                return false;
        }
        for (int k = 0; k < node->n_out; k++)
            before[node->out[k]] = !after_loss;
        after_loss |= s->node[i] == p->loss_node;
    }
    return true;
}
