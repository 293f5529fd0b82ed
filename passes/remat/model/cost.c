/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/remat/model/cost.h"

#include "ir/support/bug.h"

#include <string.h>

/* Round figures of one CPU core and the price of starting a kernel.  They are not those of the
 * machine at hand, so that a plan is the same everywhere; only ratios matter to a solver. */
static const double FLOPS_PER_SECOND = 2e11, BYTES_PER_SECOND = 2e10, START_SECONDS = 1e-7;

static double roofline_cost(const Graph *g, const Node *n)
{
    double compute = node_flops(g, n) / FLOPS_PER_SECOND;
    double move = (double)node_bytes_moved(g, n) / BYTES_PER_SECOND;
    return (compute > move ? compute : move) + START_SECONDS;
}

static double unit_cost(const Graph *g, const Node *n)
{
    (void)g;
    (void)n;
    return 1;
}

static bool is_convolution(OpKind op)
{
    switch ((int)op) {
    case OP_conv2d:
    case OP_conv2d_dgrad:
    case OP_conv2d_wgrad:
    case OP_deconv2d:
        return true;
    default:
        return false;
    }
}

static double kusumoto_cost(const Graph *g, const Node *n)
{
    (void)g;
    return is_convolution(n->op) ? 10 : 1;
}

const CostModel cost_models[] = {
    {"roofline", "the longer of computing at 200 GFLOP/s and moving bytes at 20 GB/s", false,
     roofline_cost},
    {"unit", "1 for every operation", false, unit_cost},
    {"kusumoto", "10 for a convolution, 1 for any other operation (Kusumoto et al. 2019)", false,
     kusumoto_cost},
    {"flops", "floating-point operations; moving data costs nothing", false, node_flops},
    {"profile", "seconds measured on this machine, with its threads; kept in the cache", true,
     NULL},
    {NULL, NULL, false, NULL}};

const CostModel *cost_model_find(const char *name)
{
    for (const CostModel *m = cost_models; m->name; m++)
        if (strcmp(m->name, name) == 0)
            return m;
    return NULL;
}

double node_cost(const NodeCosts *c, const Graph *g, NodeId node)
{
    const CostModel *model = c && c->model ? c->model : cost_models;
    if (model->cost)
        return model->cost(g, graph_node(g, node));
    if (!c->measured)
        BUG("nothing measures the costs");
    return c->measured(c->user, g, node);
}
