/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Schedules that solvers begin with, and what @keep and @recompute ask of them. */
#include "passes/remat/model/schedule.h"

#include <string.h>

void remat_merge_in_place(const RematProblem *p, const RematNode *node, const bool *dies,
                          bool *in_merged, bool *out_merged)
{
    memset(in_merged, 0, (size_t)node->n_in * sizeof *in_merged);
    memset(out_merged, 0, (size_t)node->n_out * sizeof *out_merged);
    for (int k = 0; k < node->n_in_place; k++) {
        int out = node->in_place[k].out, in = node->in_place[k].in;
        if (in_merged[in] || out_merged[out] || !dies[in] ||
            p->tensor[node->in[in]].bytes != p->tensor[node->out[out]].bytes)
            continue;
        in_merged[in] = out_merged[out] = true;
    }
}

RematSchedule remat_base_schedule(Pool *pool, const RematProblem *p)
{
    RematSchedule s = {p->n_nodes, POOL_ARRAY(pool, (size_t)p->n_nodes + 1, int)};
    for (int n = 0; n < p->n_nodes; n++)
        s.node[n] = n;
    return s;
}

RematSchedule remat_schedule_copy(Pool *pool, const RematSchedule *s)
{
    RematSchedule copy = {s->len, POOL_ARRAY(pool, (size_t)s->len + 1, int)};
    memcpy(copy.node, s->node, (size_t)s->len * sizeof *s->node);
    return copy;
}

static bool has_hints(const RematProblem *p)
{
    for (int n = 0; n < p->n_nodes; n++)
        if (p->node[n].hint != REMAT_AUTO)
            return true;
    return false;
}

bool *remat_crossing(Pool *scratch, const RematProblem *p, const RematSchedule *s)
{
    bool *before = POOL_ARRAY(scratch, (size_t)p->n_tensors + 1, bool), after_loss = false;
    bool *crosses = POOL_ARRAY(scratch, (size_t)p->n_nodes + 1, bool);
    for (int i = 0; i < s->len; i++) {
        const RematNode *node = &p->node[s->node[i]];
        for (int k = 0; k < node->n_in && after_loss; k++)
            if (before[node->in[k]] && p->tensor[node->in[k]].producer >= 0)
                crosses[p->tensor[node->in[k]].producer] = true;
        for (int k = 0; k < node->n_out; k++)
            before[node->out[k]] = !after_loss;
        after_loss |= s->node[i] == p->loss_node;
    }
    return crosses;
}

bool remat_obeys_hints(Pool *scratch, const RematProblem *p, const RematSchedule *s)
{
    if (!has_hints(p))
        return true;
    const bool *crosses = remat_crossing(scratch, p, s);
    bool *ran = POOL_ARRAY(scratch, (size_t)p->n_nodes + 1, bool);
    for (int i = 0; i < s->len; i++) {
        int n = s->node[i];
        if ((p->node[n].hint == REMAT_KEEP && ran[n]) ||
            (p->node[n].hint == REMAT_RECOMPUTE && crosses[n]))
            return false;
        ran[n] = true;
    }
    return true;
}
