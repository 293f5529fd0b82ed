/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/remat/model/cost.h"

#include "ir/loop.h"
#include "ir/support/bug.h"

#include <string.h>

/* What a machine does in a second, and what starting a kernel takes (Williams et al. 2009). */
typedef struct Roofline {
    double flops, bytes, start_seconds;
    double bf16_flops, tf32_flops; /* of a library's products */
} Roofline;

/* Never those of the machine at hand, so that a plan is the same everywhere; only ratios matter to
 * a solver.  Round figures of one CPU core; of devices the peaks of f32 without tensor cores, of
 * memory, and of tensor cores in NVIDIA's data sheets (A100 40 GB SXM, H100 SXM), and two
 * microseconds for a kernel that is a node of a CUDA graph. */
static const Roofline cpu_core = {2e11, 2e10, 1e-7, 2e11, 2e11},
                      sm_80 = {19.5e12, 1.555e12, 2e-6, 312e12, 156e12},
                      sm_90 = {66.9e12, 3.35e12, 2e-6, 989e12, 494e12};

/* scrimp's own kernels have no use for tensor cores. */
static double flops_a_second(const Roofline *r, const Graph *g, const Node *n)
{
    const char *precision = g->train.precision;
    if (!node_attr(n, ATTR_library))
        return r->flops;
    if (value_type(g, n->in[0])->dtype == DTYPE_BF16)
        return r->bf16_flops;
    return precision && strcmp(precision, "tf32") == 0 ? r->tf32_flops : r->flops;
}

static double seconds_under(const Roofline *r, const Graph *g, const Node *n)
{
    double step = 0;
    for (size_t i = 0; node_is_loop(n) && i < n->body->order.len; i++) {
        const Node *inner = graph_node(n->body, n->body->order.data[i]);
        step += node_runs(inner) ? seconds_under(r, n->body, inner) : 0;
    }
    if (node_is_loop(n))
        return step * (double)node_int(n, ATTR_steps, 1);
    double compute = node_flops(g, n) / flops_a_second(r, g, n);
    double move = (double)node_bytes_moved(g, n) / r->bytes;
    return (compute > move ? compute : move) + r->start_seconds;
}

static double cpu_cost(const Graph *g, const Node *n)
{
    return seconds_under(&cpu_core, g, n);
}

static double sm_80_cost(const Graph *g, const Node *n)
{
    return seconds_under(&sm_80, g, n);
}

static double sm_90_cost(const Graph *g, const Node *n)
{
    return seconds_under(&sm_90, g, n);
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
     cpu_cost},
    {"sm_80",
     "roofline of an A100: 19.5 TFLOP/s (TF32 156, bf16 312), 1,555 GB/s, 2 us for a kernel", false,
     sm_80_cost},
    {"sm_90",
     "roofline of an H100: 66.9 TFLOP/s (TF32 494, bf16 989), 3,350 GB/s, 2 us for a kernel", false,
     sm_90_cost},
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
