/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names, attributes, copies, and what operations cost, against figures worked out by hand. */
#include "check.h"
#include "ir/graph.h"
#include "ir/verify.h"
#include "ir/workspace.h"
#include "tests/support/fused.h"

#include <string.h>
#include <time.h>

static const Loc NOWHERE = {0};

static ValueId source(Graph *g, OpKind op, DType dtype, const char *name, int rank, int64_t a,
                      int64_t b, int64_t c, int64_t d)
{
    const int64_t dims[4] = {a, b, c, d};
    return graph_add_source(g, op, type_make(dtype, rank, dims), NULL, name, NOWHERE);
}

static ValueId input(Graph *g, int rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return source(g, OP_input, DTYPE_F32, NULL, rank, a, b, c, d);
}

static void check_names(Pool *pool)
{
    Graph *g = graph_new(pool, "m");
    ValueId x = source(g, OP_input, DTYPE_F32, "%x", 1, 4, 0, 0, 0);
    ValueId y = graph_add(g, OP_relu, &x, 1, NULL, "%x", NOWHERE);
    ValueId z = graph_add(g, OP_relu, &x, 1, NULL, NULL, NOWHERE);
    ValueId u = graph_add(g, OP_relu, &x, 1, NULL, NULL, NOWHERE);
    CHECK(strcmp(graph_value(g, y)->name, "%x.1") == 0);
    CHECK(strcmp(graph_value(g, z)->name, "%relu.0") == 0);
    CHECK(strcmp(graph_value(g, u)->name, "%relu.1") == 0);
    ValueId ln = graph_add(g, OP_layernorm, &x, 1, NULL, "%ln", NOWHERE);
    const Node *n = value_node(g, ln);
    CHECK(n->n_out == 3 && strcmp(graph_value(g, n->out[2])->name, "%ln#2") == 0);
    CHECK(graph_find(g, "%ln#1") == n->out[1] && graph_find(g, "%none") == VALUE_NONE);
    CHECK(strcmp(graph_unique_name(g, "%free"), "%free") == 0);
    CHECK(strcmp(graph_unique_name(g, "%x"), "%x.2") == 0);
    graph_add_output(g, "y", y);
    CHECK(graph_output(g, "y") == y && graph_output(g, "z") == VALUE_NONE);
}

static void check_attrs(Pool *pool)
{
    Graph *g = graph_new(pool, "m");
    ValueId x = input(g, 2, 4, 4, 0, 0);
    AttrList a = {.n = 0};
    const int64_t hi[2] = {1, 2};
    attrs_ints(&a, ATTR_hi, hi, 2);
    attrs_float(&a, ATTR_value, 3);
    attrs_float(&a, ATTR_value, 4);
    attrs_int(&a, ATTR_ta, 0);
    attrs_int(&a, ATTR_tb, 7);
    attrs_string(&a, ATTR_role, "r");
    const Node *n = value_node(g, graph_add(g, OP_pad, &x, 1, &a, NULL, NOWHERE));
    int count;
    CHECK(n->n_attr == 4);
    CHECK(node_float(n, ATTR_value, 0) == 4 && node_float(n, ATTR_eps, 5) == 5);
    CHECK(!node_flag(n, ATTR_ta) && node_flag(n, ATTR_tb) && node_int(n, ATTR_tb, 0) == 1);
    CHECK(node_ints(n, ATTR_hi, &count)[1] == 2 && count == 2 &&
          node_ints(n, ATTR_hi, &count) != hi);
    CHECK(!node_ints(n, ATTR_lo, &count) && count == 0);
    CHECK(node_ints_at(n, ATTR_hi, 1, 9) == 2 && node_ints_at(n, ATTR_hi, 2, 9) == 9);
    CHECK(strcmp(node_string(n, ATTR_role, ""), "r") == 0 && node_int(n, ATTR_axis, -3) == -3);
    CHECK(value_type(g, n->out[0])->dim[0] == 5 && value_type(g, n->out[0])->dim[1] == 6);
}

static void check_storage(Pool *pool)
{
    Graph *g = graph_new(pool, "m");
    ValueId w = source(g, OP_param, DTYPE_F32, "$w", 1, 4, 0, 0, 0), in[2] = {w, w};
    ValueId y = graph_add(g, OP_relu, &w, 1, NULL, NULL, NOWHERE);
    ValueId u = graph_add(g, OP_bn_running, in, 2, NULL, NULL, NOWHERE);
    graph_value(g, u)->writes = w;
    CHECK(value_storage(g, w) == w && value_storage(g, u) == w &&
          value_storage(g, y) == VALUE_NONE);
    CHECK(node_is_source(value_node(g, w)) && node_is_persistent(value_node(g, w)));
    CHECK(!node_is_source(value_node(g, u)) && !node_is_persistent(value_node(g, u)));
}

static void want_cost(const Graph *g, ValueId v, double flops, int64_t moved, int64_t workspace)
{
    const Node *n = value_node(g, v);
    CHECK_MSG(node_flops(g, n) == flops, "%s: %g flops, expected %g", op_name(n->op),
              node_flops(g, n), flops);
    CHECK_MSG(node_bytes_moved(g, n) == moved, "%s: %lld bytes moved", op_name(n->op),
              (long long)node_bytes_moved(g, n));
    CHECK_MSG(node_workspace_bytes(g, n) == workspace, "%s: workspace %lld", op_name(n->op),
              (long long)node_workspace_bytes(g, n));
}

static void check_costs(Pool *pool)
{
    Graph *g = graph_new(pool, "m");
    ValueId a = input(g, 2, 4, 8, 0, 0), w = input(g, 2, 16, 8, 0, 0),
            bias = input(g, 1, 16, 0, 0, 0);
    ValueId in[3] = {a, w, bias};
    ValueId y = graph_add(g, OP_linear, in, 3, NULL, NULL, NOWHERE);
    want_cost(g, y, 4 * 16 * (2 * 8 + 1), 4 * (32 + 128 + 16 + 64), 0);
    AttrList tb = {.n = 0};
    attrs_int(&tb, ATTR_tb, 1);
    want_cost(g, graph_add(g, OP_matmul, in, 2, &tb, NULL, NOWHERE), 2 * 4 * 16 * 8,
              4 * (32 + 128 + 64), 0);
    AttrList ta = {.n = 0};
    attrs_int(&ta, ATTR_ta, 1);
    ValueId aa[2] = {a, a};
    want_cost(g, graph_add(g, OP_matmul, aa, 2, &ta, NULL, NOWHERE), 2 * 8 * 8 * 4, 4 * (64 + 64),
              0);
    want_cost(g, graph_add(g, OP_relu, &y, 1, NULL, NULL, NOWHERE), 64, 512, 0);
    want_cost(g, graph_add(g, OP_exp, &y, 1, NULL, NULL, NOWHERE), 640, 512, 0);
    want_cost(g, graph_add(g, OP_stop_gradient, &y, 1, NULL, NULL, NOWHERE), 0, 0, 0);
    want_cost(g, graph_add(g, OP_sumsq, &y, 1, NULL, NULL, NOWHERE), 64, 260, 0);

    ValueId x = input(g, 4, 2, 6, 5, 5), filter = input(g, 4, 140, 3, 3, 3), xf[2] = {x, filter};
    AttrList conv = {.n = 0};
    attrs_int(&conv, ATTR_groups, 2);
    ValueId c = graph_add(g, OP_conv2d, xf, 2, &conv, NULL, NOWHERE);
    double macs = 2.0 * 140 * 3 * 3 * 3 * 3 * 3;
    /* Two groups of 70 output channels, padded to 128, times 3 input channels. */
    want_cost(g, c, 2 * macs, 4 * (300 + 3780 + 2520), 4 * 2 * 9 * 3 * 128);
    const int64_t hw[2] = {5, 5}, rs[2] = {3, 3};
    attrs_ints(&conv, ATTR_hw, hw, 2);
    ValueId dgrad[2] = {c, filter};
    want_cost(g, graph_add(g, OP_conv2d_dgrad, dgrad, 2, &conv, NULL, NOWHERE), 2 * macs,
              4 * (2520 + 3780 + 300), 4 * 2 * 9 * 70 * 64);
    attrs_ints(&conv, ATTR_hw, rs, 2);
    ValueId wgrad[2] = {x, c};
    want_cost(g, graph_add(g, OP_conv2d_wgrad, wgrad, 2, &conv, NULL, NOWHERE), 2 * macs,
              4 * (300 + 2520 + 3780), 0);
    AttrList pool_attrs = {.n = 0};
    const int64_t kernel[2] = {5, 5};
    attrs_ints(&pool_attrs, ATTR_kernel, kernel, 2);
    want_cost(g, graph_add(g, OP_maxpool, &x, 1, &pool_attrs, NULL, NOWHERE), 12 * 25, 4 * 312, 0);
    want_cost(g, graph_add(g, OP_bn_stats, &x, 1, NULL, NULL, NOWHERE), 1500, 4 * 312, 4 * 64);

    ValueId wide = input(g, 2, 3, REDUCE_CHUNKED_RESULTS + 1, 0, 0);
    AttrList rows = {.n = 0};
    const int64_t axis0 = 0;
    attrs_ints(&rows, ATTR_axes, &axis0, 1);
    ValueId s = graph_add(g, OP_sum, &wide, 1, &rows, NULL, NOWHERE);
    CHECK(node_workspace_bytes(g, value_node(g, s)) == 0);
}

/* The statistics of [rows, channels]: as many partial results of 8 bytes a channel as make a
 * quarter of the data, at most 64. */
static int64_t stats_workspace(Pool *pool, int64_t rows, int64_t channels)
{
    Graph *g = graph_new(pool, "m");
    ValueId x = input(g, 2, rows, channels, 0, 0);
    AttrList attrs = {0};
    attrs_int(&attrs, ATTR_axis, 1);
    const Node *n = value_node(g, graph_add(g, OP_bn_stats, &x, 1, &attrs, NULL, NOWHERE));
    CHECK(node_workspace_bytes(g, n) == reduce_chunks(g, n) * reduce_partial_bytes(g, n));
    return node_workspace_bytes(g, n);
}

/* The sum over rows of [rows, columns], or over columns. */
static int64_t sum_workspace(Pool *pool, int64_t rows, int64_t columns, int64_t axis)
{
    Graph *g = graph_new(pool, "m");
    ValueId x = input(g, 2, rows, columns, 0, 0);
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_axes, &axis, 1);
    const Node *n = value_node(g, graph_add(g, OP_sum, &x, 1, &attrs, NULL, NOWHERE));
    CHECK(node_workspace_bytes(g, n) == reduce_chunks(g, n) * reduce_partial_bytes(g, n));
    CHECK(reduce_chunks(g, n) != 1);
    return node_workspace_bytes(g, n);
}

static void check_workspaces(Pool *pool)
{
    CHECK(stats_workspace(pool, 8, 2048) == 2048 * 8); /* 64 KiB of data: one partial result */
    CHECK(stats_workspace(pool, 64, 2048) == 8 * 2048 * 8);
    CHECK(stats_workspace(pool, 4096, 64) == 64 * 64 * 8);
    CHECK(sum_workspace(pool, 16, 1024, 0) == 0); /* little to do */
    CHECK(sum_workspace(pool, 128, 1024, 0) == 32 * 1024 * 4);
    CHECK(sum_workspace(pool, 65536, 16, 0) == 64 * 64);
    CHECK(sum_workspace(pool, 4096, 256, 1) == 0); /* rows enough for every thread */
    CHECK(sum_workspace(pool, 2, 65536, 1) == 64 * 64);
    for (int64_t rows = 1; rows < 3000; rows = rows * 3 / 2 + 1)
        for (int64_t columns = 1; columns < 3000; columns = columns * 4 / 3 + 1) {
            int64_t data = 4 * rows * columns, one = (8 * columns + 63) / 64 * 64;
            int64_t stats = stats_workspace(pool, rows, columns);
            CHECK(stats == one || stats <= data / REDUCE_DATA_PER_PARTIAL);
            for (int64_t axis = 0; axis < 2; axis++)
                CHECK(sum_workspace(pool, rows, columns, axis) <= data / REDUCE_DATA_PER_PARTIAL);
        }
}

/* fused: relu(x @ w) + r, and a second result of r's shape */
static void check_group(Pool *pool)
{
    Graph *g = graph_new(pool, "m"), *body = graph_new(pool, "");
    ValueId x = input(g, 2, 4, 4, 0, 0), w = input(g, 2, 4, 4, 0, 0), r = input(g, 2, 4, 4, 0, 0);
    ValueId row = input(g, 1, 4, 0, 0, 0);
    ValueId in[4], outer[4] = {x, w, r, row};
    for (int i = 0; i < 4; i++)
        in[i] = i < 3 ? input(body, 2, 4, 4, 0, 0) : input(body, 1, 4, 0, 0, 0);
    ValueId product = graph_add(body, OP_matmul, in, 2, NULL, NULL, NOWHERE);
    ValueId sum[2] = {product, in[2]};
    sum[0] = graph_add(body, OP_add, sum, 2, NULL, NULL, NOWHERE);
    sum[1] = in[3];
    graph_add_output(body, "y", graph_add(body, OP_add, sum, 2, NULL, NULL, NOWHERE));
    const Node *n = graph_node(g, graph_add_fused(g, body, outer, 4, NULL, NOWHERE));
    CHECK(node_flops(g, n) == 128 + 16 + 16 && node_workspace_bytes(g, n) == 0);
    CHECK(!node_may_overwrite(g, n, 0, 0) && !node_may_overwrite(g, n, 0, 1));
    CHECK(node_may_overwrite(g, n, 0, 2));
    CHECK(!node_may_overwrite(g, n, 0, 3));
    /* The same tensor as matrix operand and as addend. */
    ValueId same[4] = {r, w, r, row};
    n = graph_node(g, graph_add_fused(g, body, same, 4, NULL, NOWHERE));
    CHECK(!node_may_overwrite(g, n, 0, 2));
    /* Through a view as well. */
    same[0] = graph_add(g, OP_stop_gradient, &r, 1, NULL, NULL, NOWHERE);
    n = graph_node(g, graph_add_fused(g, body, same, 4, NULL, NOWHERE));
    CHECK(!node_may_overwrite(g, n, 0, 2));
}

/* A group that reads x element-wise, and also broadcast to a larger result. */
static void check_group_broadcast(Pool *pool)
{
    Graph *g = graph_new(pool, "m"), *body = graph_new(pool, "");
    ValueId outer[2] = {input(g, 2, 4, 4, 0, 0), input(g, 3, 2, 4, 4, 0)}, in[2];
    in[0] = input(body, 2, 4, 4, 0, 0);
    in[1] = input(body, 3, 2, 4, 4, 0);
    ValueId twice = graph_add(body, OP_neg, in, 1, NULL, NULL, NOWHERE), sum[2] = {twice, in[1]};
    graph_add_output(body, "small", twice);
    graph_add_output(body, "large", graph_add(body, OP_add, sum, 2, NULL, NULL, NOWHERE));
    const Node *n = graph_node(g, graph_add_fused(g, body, outer, 2, NULL, NOWHERE));
    CHECK(!node_may_overwrite(g, n, 0, 0));
    CHECK(node_may_overwrite(g, n, 1, 1) && !node_may_overwrite(g, n, 0, 1));
}

/* The generator's state has the shape and size of the result, but every element of the result reads
 * all of it. */
static void check_group_rng(Pool *pool)
{
    Graph *g = graph_new(pool, "m"), *body = graph_new(pool, "");
    ValueId outer[2] = {input(g, 1, 4, 0, 0, 0),
                        source(g, OP_input, DTYPE_I32, NULL, 1, 4, 0, 0, 0)};
    ValueId in[2] = {input(body, 1, 4, 0, 0, 0),
                     source(body, OP_input, DTYPE_I32, NULL, 1, 4, 0, 0, 0)};
    graph_add_output(body, "y", graph_add(body, OP_dropout, in, 2, NULL, NULL, NOWHERE));
    const Node *n = graph_node(g, graph_add_fused(g, body, outer, 2, NULL, NOWHERE));
    CHECK(node_may_overwrite(g, n, 0, 0) && !node_may_overwrite(g, n, 0, 1));
}

static bool overwrites(Graph *g, OpKind op, ValueId a, ValueId b, ValueId c, int n_in, int input_)
{
    ValueId in[3] = {a, b, c};
    AttrList attrs = {.n = 0};
    if (op == OP_cast)
        attrs_string(&attrs, ATTR_dtype, "i32");
    const Node *n = value_node(g, graph_add(g, op, in, n_in, &attrs, NULL, NOWHERE));
    return node_may_overwrite(g, n, 0, input_);
}

static void check_overwriting(Pool *pool)
{
    Graph *g = graph_new(pool, "m");
    ValueId x = input(g, 2, 4, 4, 0, 0), y = input(g, 2, 4, 4, 0, 0), v = input(g, 1, 4, 0, 0, 0);
    ValueId four = input(g, 1, 4, 0, 0, 0),
            rng = source(g, OP_input, DTYPE_I32, NULL, 1, 4, 0, 0, 0);
    ValueId labels = source(g, OP_input, DTYPE_I32, NULL, 1, 4, 0, 0, 0);
    ValueId loss = input(g, 0, 0, 0, 0, 0);
    CHECK(overwrites(g, OP_relu, x, 0, 0, 1, 0));
    CHECK(overwrites(g, OP_add, x, y, 0, 2, 0) && overwrites(g, OP_add, x, y, 0, 2, 1));
    CHECK(overwrites(g, OP_add, x, x, 0, 2, 0));
    CHECK(overwrites(g, OP_add, x, v, 0, 2, 0) && !overwrites(g, OP_add, x, v, 0, 2, 1));
    CHECK(!overwrites(g, OP_lt, x, y, 0, 2, 0)); /* bool is smaller */
    CHECK(overwrites(g, OP_cast, x, 0, 0, 1, 0));
    CHECK(overwrites(g, OP_dropout, four, rng, 0, 2, 0));
    CHECK(!overwrites(g, OP_dropout, four, rng, 0, 2, 1));
    CHECK(overwrites(g, OP_softmax, x, 0, 0, 1, 0));
    CHECK(overwrites(g, OP_softmax_grad, x, y, 0, 2, 1));
    CHECK(overwrites(g, OP_cross_entropy_grad, x, labels, loss, 3, 0));
    CHECK(!overwrites(g, OP_matmul, x, y, 0, 2, 0));
    CHECK(!overwrites(g, OP_stop_gradient, x, 0, 0, 1, 0));
    CHECK(!overwrites(g, OP_layernorm, x, 0, 0, 1, 0));
}

static void check_copy(Pool *pool)
{
    Graph *g = graph_new(pool, "m");
    ValueId x = input(g, 1, 4, 0, 0, 0);
    graph_add(g, OP_relu, &x, 1, NULL, "%y", NOWHERE);
    Pool *other = pool_new();
    Graph *c = graph_copy(other, g);
    graph_add(c, OP_relu, &x, 1, NULL, "%y", NOWHERE);
    CHECK(c->nodes.len == 3 && g->nodes.len == 2 && graph_find(c, "%y.1") == 2);
    CHECK(graph_find(g, "%y.1") == VALUE_NONE);
    pool_free(other);
}

/* Building costs O(1) a node: equal names would make it quadratic. */
static void check_growth(Pool *pool)
{
    Graph *g = graph_new(pool, "m");
    ValueId v = input(g, 1, 4, 0, 0, 0);
    clock_t begin = clock();
    for (int i = 0; i < 200000; i++)
        v = graph_add(g, OP_relu, &v, 1, NULL, i % 2 ? "%same" : NULL, NOWHERE);
    const char *message;
    CHECK(graph_verify(g, &message));
    double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    CHECK_MSG(seconds < 10, "%g seconds", seconds);
    CHECK(graph_flops(g) == 4 * 200000);
}

int main(void)
{
    Pool *pool = pool_new();
    check_names(pool);
    check_attrs(pool);
    check_storage(pool);
    check_costs(pool);
    check_workspaces(pool);
    check_group(pool);
    check_group_broadcast(pool);
    check_group_rng(pool);
    check_overwriting(pool);
    check_copy(pool);
    check_growth(pool);
    pool_free(pool);
    return test_result();
}
