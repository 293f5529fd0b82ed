/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/layered_problem.h"

typedef struct Layered {
    RematProblem *p;
    Random *r;
    int *forward_in, *n_forward_in; /* by forward node: the forward nodes that it reads, 3 each */
    int *value, *gradient, *weight; /* by forward node: tensors; gradient: -1 = none so far */
} Layered;

static RematNode *layered_node(Layered *l, int n_in, double cost)
{
    RematProblem *p = l->p;
    RematNode *node = &p->node[p->n_nodes];
    *node = (RematNode){.name = pool_printf(p->pool, "n%d", p->n_nodes), .cost = cost};
    node->rerun = true;
    node->in = POOL_ARRAY(p->pool, (size_t)n_in, int);
    node->out = POOL_ARRAY(p->pool, 1, int);
    node->overwrites = POOL_ARRAY(p->pool, 1, int);
    node->out[node->n_out++] = -1;
    p->n_nodes++;
    return node;
}

static int layered_output(Layered *l, RematNode *node, int64_t bytes)
{
    return node->out[0] = problem_tensor(l->p, bytes, l->p->n_nodes - 1, false);
}

static void layered_backward(Layered *l, int v, int64_t bytes)
{
    RematNode *dw = layered_node(l, 3, 2);
    problem_read(dw, l->gradient[v]);
    problem_read(dw, l->value[v]);
    int gradient = layered_output(l, dw, l->p->tensor[l->weight[v]].bytes);
    for (int k = 0; k < l->n_forward_in[v]; k++) {
        int u = l->forward_in[3 * v + k];
        RematNode *dx = layered_node(l, 4, 2);
        problem_read(dx, l->gradient[v]);
        problem_read(dx, l->weight[v]);
        problem_read(dx, l->value[u]);
        if (l->gradient[u] >= 0)
            problem_read(dx, l->gradient[u]);
        l->gradient[u] = layered_output(l, dx, bytes);
    }
    RematNode *update = layered_node(l, 2, 1);
    problem_read(update, gradient);
    problem_read(update, l->weight[v]);
    update->rerun = false;
    update->overwrites[update->n_overwrites++] = l->weight[v];
    layered_output(l, update, 0);
}

RematProblem *layered_problem(Pool *pool, Random *r, int layers, int width)
{
    int n = layers * width + 1;
    size_t most = 8 * (size_t)n + 8;
    RematProblem *p = POOL_NEW(pool, RematProblem);
    *p = (RematProblem){.pool = pool, .loss_node = n - 1};
    p->node = POOL_ARRAY(pool, most, RematNode);
    p->tensor = POOL_ARRAY(pool, most, RematTensor);
    Layered l = {.p = p, .r = r};
    l.forward_in = POOL_ARRAY(pool, 3 * (size_t)n, int);
    l.n_forward_in = POOL_ARRAY(pool, (size_t)n, int);
    l.value = POOL_ARRAY(pool, (size_t)n, int);
    l.gradient = POOL_ARRAY(pool, (size_t)n, int);
    l.weight = POOL_ARRAY(pool, (size_t)n, int);
    int batch = problem_tensor(p, 4096, -1, false);
    for (int v = 0; v < n; v++) {
        l.gradient[v] = -1;
        l.weight[v] = problem_tensor(p, 64 * (1 + random_below(r, 16)), -1, true);
        RematNode *node = layered_node(&l, 5, 1 + random_below(r, 9));
        node->forward = true;
        problem_read(node, l.weight[v]);
        int reads = v == n - 1 ? 3 : 1 + (width > 1 ? random_below(r, 3) : 0), layer = v / width;
        for (int k = 0; k < reads && layer > 0 && (k == 0 || width > 1); k++) {
            int u = (layer - 1) * width + random_below(r, width);
            if (l.n_forward_in[v] > 0 && random_below(r, 8) == 0 && layer > 1)
                u -= width;
            int before = node->n_in;
            problem_read(node, l.value[u]);
            if (node->n_in > before)
                l.forward_in[3 * v + l.n_forward_in[v]++] = u;
        }
        if (layer == 0)
            problem_read(node, batch);
        l.value[v] = layered_output(&l, node, v == n - 1 ? 64 : 64 * (8 + random_below(r, 64)));
    }
    p->tensor[l.value[n - 1]].keep = true;
    l.gradient[n - 1] = l.value[n - 1];
    for (int v = n - 1; v >= 0; v--)
        if (l.gradient[v] >= 0)
            layered_backward(&l, v, 64 * (8 + random_below(r, 64)));
    return p;
}
