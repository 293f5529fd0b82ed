/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Cost models on a step with a convolution, by hand; what a measuring callback is asked. */
#include "check.h"
#include "passes/autodiff/autodiff.h"
#include "passes/pass.h"
#include "passes/remat/model/problem.h"
#include "passes/remat/model/step_problem.h"
#include "passes/rewrite.h"
#include "tests/support/plan_request.h"

#include <math.h>
#include <string.h>

enum { N = 2, C = 3, HW = 8, K = 4 };

/* loss = sum(relu(conv(x, w))), and the gradients of it. */
static Graph *conv_step(Pool *pool)
{
    Graph *g = graph_new(pool, "step");
    int64_t x_dims[] = {N, C, HW, HW}, w_dims[] = {K, C, 1, 1};
    ValueId x =
        graph_add_source(g, OP_input, type_make(DTYPE_F32, 4, x_dims), NULL, "%x", (Loc){0});
    ValueId w =
        graph_add_source(g, OP_param, type_make(DTYPE_F32, 4, w_dims), NULL, "$w", (Loc){0});
    ValueId in[] = {x, w};
    ValueId y = graph_add(g, OP_conv2d, in, 2, NULL, "%y", (Loc){0});
    ValueId r = graph_add(g, OP_relu, &y, 1, NULL, "%r", (Loc){0});
    ValueId loss = graph_add(g, OP_sum, &r, 1, NULL, "%loss", (Loc){0});
    ValueId seed =
        graph_add_source(g, OP_input, type_make(DTYPE_F32, 0, NULL), NULL, "%one", (Loc){0});
    ValueId grad = VALUE_NONE;
    autodiff_gradients(g, loss, seed, &w, 1, &grad);
    graph_add_output(g, "loss", loss);
    graph_add_output(g, "grad", grad);
    return g;
}

static double cost_of(Pool *pool, const Graph *g, const char *model, OpKind op)
{
    NodeCosts costs = {.model = cost_model_find(model)};
    RematMapping map;
    RematProblem *p = remat_problem_from_graph(pool, g, &costs, &map);
    for (int n = 0; n < p->n_nodes; n++)
        if (graph_node(g, map.node_of[n])->op == op)
            return p->node[n].cost;
    return -1;
}

static void check_models(Pool *pool, const Graph *g)
{
    double macs = (double)N * HW * HW * C * K;
    CHECK(cost_of(pool, g, "unit", OP_conv2d) == 1 && cost_of(pool, g, "unit", OP_relu) == 1);
    CHECK(cost_of(pool, g, "kusumoto", OP_conv2d) == 10);
    CHECK(cost_of(pool, g, "kusumoto", OP_conv2d_wgrad) == 10);
    CHECK(cost_of(pool, g, "kusumoto", OP_relu) == 1);
    CHECK(cost_of(pool, g, "flops", OP_conv2d) == 2 * macs);
    CHECK(cost_of(pool, g, "roofline", OP_conv2d) > cost_of(pool, g, "roofline", OP_relu) / 2);
    double relu_bytes = 2.0 * N * K * HW * HW * 4; /* read and written */
    CHECK(fabs(cost_of(pool, g, "sm_80", OP_relu) - (2e-6 + relu_bytes / 1.555e12)) < 1e-15);
    CHECK(fabs(cost_of(pool, g, "sm_90", OP_relu) - (2e-6 + relu_bytes / 3.35e12)) < 1e-15);
    CHECK(cost_model_find("seconds") == NULL);
}

/* Tensor cores are a library's, in TF32 where the step says so, and for bf16. */
static void check_tensor_cores(Pool *pool)
{
    enum { SIDE = 4096 };
    const double flops = 2.0 * SIDE * SIDE * SIDE;
    const int64_t dims[] = {SIDE, SIDE};
    for (int bf16 = 0; bf16 < 2; bf16++) {
        Graph *g = graph_new(pool, "step");
        Type t = type_make(bf16 ? DTYPE_BF16 : DTYPE_F32, 2, dims);
        ValueId x = graph_add_source(g, OP_input, t, NULL, "%x", (Loc){0}), in[] = {x, x};
        ValueId y = graph_add(g, OP_matmul, in, 2, NULL, "%y", (Loc){0});
        graph_add_output(g, "y", y);
        g->train.precision = "tf32";
        CHECK(fabs(cost_of(pool, g, "sm_90", OP_matmul) - (2e-6 + flops / 66.9e12)) < 1e-12);
        node_set_attr(g, value_node(g, y), (Attr){.key = ATTR_library, .u.s = "cublaslt"});
        double peak = bf16 ? 989e12 : 494e12;
        CHECK(fabs(cost_of(pool, g, "sm_90", OP_matmul) - (2e-6 + flops / peak)) < 1e-12);
        g->train.precision = NULL;
        peak = bf16 ? 989e12 : 66.9e12;
        CHECK(fabs(cost_of(pool, g, "sm_90", OP_matmul) - (2e-6 + flops / peak)) < 1e-12);
    }
}

typedef struct Asked {
    const Graph *g;
    int n;
} Asked;

static double half_second(void *user, const Graph *g, NodeId node)
{
    Asked *a = user;
    CHECK(a->g == g && graph_node(g, node)->op != OP_input);
    a->n++;
    return 0.5;
}

static void check_measured(Pool *pool, Graph *g)
{
    Asked asked = {.g = g};
    PassContext c = {.graph = g, .pool = pool};
    RematError e;
    c.request = request_of(pool, NULL, (PlanSettings){.cost = "profile"});
    CHECK(!plan_request_has_costs(&c.request, &e) && strcmp(e.code, "E412") == 0);
    c.request.costs.measured = half_second;
    c.request.costs.user = &asked;
    CHECK(plan_request_has_costs(&c.request, &e) && pass_remat(&c) && asked.n > 3);
    CHECK(c.report.step_cost == 0.5 * asked.n && c.report.cost->in_seconds);
}

int main(void)
{
    Pool *pool = pool_new();
    Graph *g = conv_step(pool);
    check_models(pool, g);
    check_tensor_cores(pool);
    check_measured(pool, g);
    pool_free(pool);
    return test_result();
}
