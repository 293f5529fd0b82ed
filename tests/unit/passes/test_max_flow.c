/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Maximum flows against all cuts of small random networks, and the cut that is reported. */
#include "check.h"
#include "passes/remat/bounds/max_flow.h"
#include "tests/support/random_step.h"

#include <string.h>

enum { MAX_VERTICES = 9, MAX_EDGES = 30 };

typedef struct Net {
    int n, m, from[MAX_EDGES], to[MAX_EDGES];
    int64_t capacity[MAX_EDGES];
} Net;

static Net random_net(Random *r)
{
    Net net = {.n = 2 + random_below(r, MAX_VERTICES - 1), .m = random_below(r, MAX_EDGES + 1)};
    for (int e = 0; e < net.m; e++) {
        net.from[e] = random_below(r, net.n);
        net.to[e] = random_below(r, net.n);
        net.capacity[e] = random_below(r, 6) ? random_below(r, 12) : FLOW_INFINITE;
        if (random_below(r, 8) == 0) /* sums beyond 32 bits */
            net.capacity[e] = (int64_t)random_below(r, 1000) << 40;
    }
    return net;
}

/* The cheapest set of vertices with vertex 0 and without vertex 1. */
static int64_t least_cut(const Net *net)
{
    int64_t least = FLOW_INFINITE;
    for (int set = 1; set < 1 << net->n; set += 2) {
        int64_t sum = 0;
        for (int e = 0; e < net->m && !(set & 2) && sum < FLOW_INFINITE; e++)
            if (set >> net->from[e] & 1 && !(set >> net->to[e] & 1))
                sum += net->capacity[e];
        if (!(set & 2) && sum < least)
            least = sum;
    }
    return least;
}

static void check_net(Pool *parent, const Net *net, int index)
{
    Pool *pool = pool_new_child(parent);
    FlowNetwork *flow = flow_new(pool);
    int64_t work = 0, least = least_cut(net), cut = 0;
    for (int v = 0; v < net->n; v++)
        CHECK(flow_vertex(flow) == v);
    for (int e = 0; e < net->m; e++)
        CHECK(flow_edge(flow, net->from[e], net->to[e]) == e);
    for (int round = 0; round < 2; round++) { /* capacities may change, flows start again */
        for (int e = 0; e < net->m; e++)
            flow_set_capacity(flow, e, round == 0 ? 3 : net->capacity[e]);
        int64_t value = flow_max(flow, 0, 1, &work);
        CHECK_MSG(round == 0 || value == least, "case %d: %lld, least cut %lld", index,
                  (long long)value, (long long)least);
    }
    for (int e = 0; e < net->m && least < FLOW_INFINITE; e++)
        cut += flow_in_cut(flow, e) ? net->capacity[e] : 0;
    CHECK_MSG(least == FLOW_INFINITE || cut == least, "case %d: cut %lld, least %lld", index,
              (long long)cut, (long long)least);
    pool_free(pool);
}

/* A path as long as a deep model, and beside it two edges into one vertex. */
static void check_path(Pool *pool)
{
    enum { LONG = 50000 };
    FlowNetwork *flow = flow_new(pool);
    int64_t work = 0;
    for (int v = 0; v < LONG; v++)
        flow_vertex(flow);
    for (int v = 2; v + 1 < LONG; v++)
        flow_set_capacity(flow, flow_edge(flow, v, v + 1), v == LONG / 2 ? 5 : FLOW_INFINITE);
    flow_set_capacity(flow, flow_edge(flow, 0, 2), FLOW_INFINITE);
    flow_set_capacity(flow, flow_edge(flow, LONG - 1, 1), 7);
    CHECK(flow_max(flow, 0, 1, &work) == 5);
    CHECK(flow_in_cut(flow, LONG / 2 - 2));
    flow_set_capacity(flow, flow_edge(flow, 0, LONG - 1), 1);
    flow_set_capacity(flow, flow_edge(flow, 0, LONG - 1), 3);
    CHECK(flow_max(flow, 0, 1, &work) == 7);
}

int main(void)
{
    enum { SEED = 31337 };
    Pool *pool = pool_new();
    Random r = {SEED};
    printf("seed %d\n", SEED);
    for (int k = 0; k < 3000 && !check_failures; k++) {
        Net net = random_net(&r);
        check_net(pool, &net, k);
    }
    check_path(pool);
    pool_free(pool);
    return test_result();
}
