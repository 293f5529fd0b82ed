/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/random_problem.h"

int problem_tensor(RematProblem *p, int64_t bytes, int producer, bool persistent)
{
    p->tensor[p->n_tensors] = (RematTensor){bytes, producer, persistent, false, "tensor"};
    p->persistent_bytes += persistent ? bytes : 0;
    return p->n_tensors++;
}

void problem_read(RematNode *node, int tensor)
{
    for (int k = 0; k < node->n_in; k++)
        if (node->in[k] == tensor)
            return;
    node->in[node->n_in++] = tensor;
}

/* A tensor made or given so far that has not been overwritten; recent ones more often. */
static int problem_pick(const RematProblem *p, const bool *overwritten, Random *r)
{
    for (;;) {
        int t = random_below(r, 3) && p->n_tensors > 5 ? p->n_tensors - 1 - random_below(r, 5)
                                                       : random_below(r, p->n_tensors);
        if (!overwritten[t])
            return t;
    }
}

static void problem_node(RematProblem *p, bool *overwritten, Random *r, int index)
{
    Pool *pool = p->pool;
    RematNode *node = &p->node[p->n_nodes++];
    *node = (RematNode){.name = pool_printf(pool, "n%d", index), .cost = 1 + random_below(r, 9)};
    node->in = POOL_ARRAY(pool, 4, int);
    node->out = POOL_ARRAY(pool, 2, int);
    node->in_place = POOL_ARRAY(pool, 6, RematInPlace);
    node->overwrites = POOL_ARRAY(pool, 1, int);
    node->rerun = random_below(r, 8) > 0;
    node->workspace = random_below(r, 4) ? 0 : 64 * random_below(r, 8);
    for (int k = random_below(r, 3); k >= 0; k--)
        problem_read(node, problem_pick(p, overwritten, r));
    int weight = node->in[0];
    if (p->tensor[weight].persistent && random_below(r, 3) == 0) {
        node->rerun = false;
        overwritten[weight] = true;
        node->overwrites[node->n_overwrites++] = weight;
        node->out[node->n_out++] = problem_tensor(p, 0, index, false);
        return;
    }
    for (int k = random_below(r, 4) ? 1 : 2; k > 0; k--)
        node->out[node->n_out++] = problem_tensor(p, 64 * (1 + random_below(r, 6)), index, false);
    for (int o = 0; o < node->n_out; o++)
        for (int i = 0; i < node->n_in; i++)
            if (p->tensor[node->in[i]].bytes == p->tensor[node->out[o]].bytes && random_below(r, 2))
                node->in_place[node->n_in_place++] = (RematInPlace){o, i};
}

RematProblem *random_problem(Pool *pool, Random *r, int n_nodes)
{
    RematProblem *p = POOL_NEW(pool, RematProblem);
    size_t most = 2 * (size_t)n_nodes + 8;
    *p = (RematProblem){.pool = pool, .loss_node = -1};
    p->node = POOL_ARRAY(pool, (size_t)n_nodes + 1, RematNode);
    p->tensor = POOL_ARRAY(pool, most, RematTensor);
    bool *overwritten = POOL_ARRAY(pool, most, bool);
    for (int k = 0; k < 2; k++)
        problem_tensor(p, 64 * (1 + random_below(r, 4)), -1, false);
    for (int k = 0; k < 2; k++)
        problem_tensor(p, 64 * (1 + random_below(r, 4)), -1, true);
    for (int k = 0; k < n_nodes; k++)
        problem_node(p, overwritten, r, k);
    p->loss_node = n_nodes / 2;
    for (int k = 0; k < 2; k++)
        p->tensor[p->n_tensors - 1 - random_below(r, 3)].keep = true;
    for (int n = p->loss_node; n >= 0; n--) {
        p->node[n].forward |= n == p->loss_node;
        for (int k = 0; p->node[n].forward && k < p->node[n].n_in; k++)
            if (p->tensor[p->node[n].in[k]].producer >= 0)
                p->node[p->tensor[p->node[n].in[k]].producer].forward = true;
    }
    return p;
}

/* By tensor: the node that reads it last, or made it; -1 = none. */
static int *problem_last_uses(const RematProblem *p)
{
    int *last = POOL_ARRAY(p->pool, (size_t)p->n_tensors + 1, int);
    for (int t = 0; t < p->n_tensors; t++)
        last[t] = p->tensor[t].producer;
    for (int n = 0; n < p->n_nodes; n++)
        for (int k = 0; k < p->node[n].n_in; k++)
            last[p->node[n].in[k]] = n;
    return last;
}

RematProblem *random_overwriting(Pool *pool, Random *r, int n_nodes)
{
    RematProblem *p = random_problem(pool, r, n_nodes);
    const int *last = problem_last_uses(p);
    for (int n = 0; n < p->n_nodes; n++)
        if (random_below(r, 6) == 0)
            p->node[n].cost = 0;
    for (int t = 0; t < p->n_tensors; t++) {
        RematTensor *x = &p->tensor[t];
        if (x->producer < 0)
            continue;
        x->keep |= random_below(r, 6) == 0;
        if (random_below(r, 8) == 0)
            p->node[x->producer].n_in_place = 0;
        int by = last[t] + 1 + random_below(r, 4);
        if (random_below(r, 3) || by >= p->n_nodes || p->node[by].n_overwrites > 0)
            continue;
        p->node[by].rerun = false;
        p->node[by].overwrites[p->node[by].n_overwrites++] = t;
    }
    return p;
}

RematProblem *random_training(Pool *pool, Random *r, int n_forward)
{
    RematProblem *p = POOL_NEW(pool, RematProblem);
    size_t n_nodes = 2 * (size_t)n_forward, n_tensors = 4 * (size_t)n_forward + 4;
    *p = (RematProblem){.pool = pool, .loss_node = n_forward - 1};
    p->node = POOL_ARRAY(pool, n_nodes, RematNode);
    p->tensor = POOL_ARRAY(pool, n_tensors, RematTensor);
    int batch = problem_tensor(p, 64 * (1 + random_below(r, 4)), -1, false), last = batch;
    int *made = POOL_ARRAY(pool, (size_t)n_forward, int), sizes = random_below(r, 2) ? 2 : 6;
    for (int k = 0; k < 2 * n_forward; k++) {
        RematNode *node = &p->node[p->n_nodes++];
        int mirror = 2 * n_forward - 1 - k;
        *node = (RematNode){.name = "n", .cost = 1 + random_below(r, 9), .rerun = true};
        node->forward = k < n_forward;
        node->in = POOL_ARRAY(pool, 4, int);
        node->out = POOL_ARRAY(pool, 2, int);
        node->in_place = POOL_ARRAY(pool, 4, RematInPlace);
        node->workspace = random_below(r, 4) ? 0 : 64 * random_below(r, 4);
        problem_read(node, last);
        if (k >= n_forward)
            problem_read(node, mirror > 0 ? made[mirror - 1] : batch);
        if (random_below(r, 3) == 0)
            problem_read(node, random_below(r, p->n_tensors));
        node->out[node->n_out++] = last =
            problem_tensor(p, 64 * (1 + random_below(r, sizes)), k, false);
        if (random_below(r, 5) == 0)
            node->out[node->n_out++] = problem_tensor(p, 64, k, false);
        for (int i = 0; i < node->n_in; i++)
            if (p->tensor[node->in[i]].bytes == p->tensor[last].bytes)
                node->in_place[node->n_in_place++] = (RematInPlace){0, i};
        if (k < n_forward)
            made[k] = node->out[0];
    }
    p->tensor[last].keep = true;
    return p;
}
