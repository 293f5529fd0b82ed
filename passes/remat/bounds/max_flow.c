/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/remat/bounds/max_flow.h"

#include <string.h>

/* Edge e is arc 2e, and arc 2e + 1 backwards. */
struct FlowNetwork {
    Pool *pool;
    int n_vertices, n_edges, room, closed_vertices, closed_edges;
    int *from, *to;               /* by edge */
    int64_t *capacity, *residual; /* by edge; by arc */
    int *begin, *arc;             /* arcs that leave a vertex: arc[begin[v]] .. */
    int *level, *current, *queue, *path;
};

FlowNetwork *flow_new(Pool *pool)
{
    FlowNetwork *net = POOL_NEW(pool, FlowNetwork);
    net->pool = pool;
    return net;
}

int flow_vertex(FlowNetwork *net)
{
    return net->n_vertices++;
}

int flow_n_edges(const FlowNetwork *net)
{
    return net->n_edges;
}

static void grow(FlowNetwork *net)
{
    size_t old = (size_t)net->room, room = old ? 2 * old : 64;
    net->from = pool_grow(net->pool, net->from, old * sizeof(int), room * sizeof(int));
    net->to = pool_grow(net->pool, net->to, old * sizeof(int), room * sizeof(int));
    net->capacity =
        pool_grow(net->pool, net->capacity, old * sizeof(int64_t), room * sizeof(int64_t));
    net->room = (int)room;
}

int flow_edge(FlowNetwork *net, int from, int to)
{
    if (net->n_edges == net->room)
        grow(net);
    net->from[net->n_edges] = from;
    net->to[net->n_edges] = to;
    net->capacity[net->n_edges] = 0;
    return net->n_edges++;
}

void flow_set_capacity(FlowNetwork *net, int edge, int64_t capacity)
{
    net->capacity[edge] = capacity;
}

static int tail(const FlowNetwork *net, int arc)
{
    return arc & 1 ? net->to[arc >> 1] : net->from[arc >> 1];
}

static int head(const FlowNetwork *net, int arc)
{
    return arc & 1 ? net->from[arc >> 1] : net->to[arc >> 1];
}

/* Arcs by the vertex that they leave. */
static void close_network(FlowNetwork *net)
{
    if (net->closed_vertices == net->n_vertices && net->closed_edges == net->n_edges)
        return;
    size_t n = (size_t)net->n_vertices, m = 2 * (size_t)net->n_edges;
    net->begin = POOL_ARRAY(net->pool, n + 2, int);
    net->arc = POOL_ARRAY(net->pool, m + 1, int);
    net->residual = POOL_ARRAY(net->pool, m + 1, int64_t);
    net->level = POOL_ARRAY(net->pool, n + 1, int);
    net->current = POOL_ARRAY(net->pool, n + 1, int);
    net->queue = POOL_ARRAY(net->pool, n + 1, int);
    net->path = POOL_ARRAY(net->pool, n + 1, int);
    for (int a = 0; a < (int)m; a++)
        net->begin[tail(net, a) + 1]++;
    for (size_t v = 0; v < n; v++)
        net->begin[v + 1] += net->begin[v];
    memcpy(net->current, net->begin, n * sizeof(int));
    for (int a = 0; a < (int)m; a++)
        net->arc[net->current[tail(net, a)]++] = a;
    net->closed_vertices = net->n_vertices;
    net->closed_edges = net->n_edges;
}

/* level[v]: residual distance to the sink, -1 = cannot reach it, or is farther than the source. */
static bool find_levels(FlowNetwork *net, int source, int sink, int64_t *work)
{
    int n_queue = 0;
    memset(net->level, -1, (size_t)net->n_vertices * sizeof(int));
    net->level[sink] = 0;
    net->queue[n_queue++] = sink;
    for (int q = 0; q < n_queue; q++) {
        int v = net->queue[q];
        if (net->level[source] >= 0 && net->level[v] >= net->level[source])
            break;
        *work += net->begin[v + 1] - net->begin[v];
        for (int k = net->begin[v]; k < net->begin[v + 1]; k++) {
            int back = net->arc[k] ^ 1, u = tail(net, back);
            if (net->residual[back] == 0 || net->level[u] >= 0)
                continue;
            net->level[u] = net->level[v] + 1;
            net->queue[n_queue++] = u;
        }
    }
    return net->level[source] >= 0;
}

/* The next arc from v to a vertex one level down, -1 = none. */
static int next_arc(FlowNetwork *net, int v, int64_t *work)
{
    for (; net->current[v] < net->begin[v + 1]; net->current[v]++) {
        int a = net->arc[net->current[v]];
        ++*work;
        if (net->residual[a] > 0 && net->level[head(net, a)] == net->level[v] - 1)
            return a;
    }
    return -1;
}

/* Pushes what the path carries; the path is cut back to its first full arc. */
static int64_t augment(FlowNetwork *net, int *len)
{
    int64_t push = INT64_MAX;
    for (int k = 0; k < *len; k++)
        if (net->residual[net->path[k]] < push)
            push = net->residual[net->path[k]];
    int full = *len - 1;
    for (int k = *len - 1; k >= 0; k--) {
        net->residual[net->path[k]] -= push;
        net->residual[net->path[k] ^ 1] += push;
        if (net->residual[net->path[k]] == 0)
            full = k;
    }
    *len = full;
    return push;
}

static int64_t blocking_flow(FlowNetwork *net, int source, int sink, int64_t *work)
{
    int64_t sum = 0;
    int len = 0, v = source;
    memcpy(net->current, net->begin, (size_t)net->n_vertices * sizeof(int));
    while (sum < FLOW_INFINITE) {
        int a = v == sink ? -1 : next_arc(net, v, work);
        if (v == sink) {
            *work += len;
            sum += augment(net, &len);
            v = tail(net, net->path[len]);
        } else if (a >= 0) {
            net->path[len++] = a;
            v = head(net, a);
        } else if (v == source) {
            return sum;
        } else { /* a dead end */
            net->level[v] = -1;
            v = tail(net, net->path[--len]);
        }
    }
    return FLOW_INFINITE;
}

int64_t flow_max(FlowNetwork *net, int source, int sink, int64_t *work)
{
    int64_t sum = 0;
    close_network(net);
    for (int e = 0; e < net->n_edges; e++) {
        net->residual[2 * e] = net->capacity[e];
        net->residual[2 * e + 1] = 0;
    }
    while (sum < FLOW_INFINITE && find_levels(net, source, sink, work))
        sum += blocking_flow(net, source, sink, work);
    return sum < FLOW_INFINITE ? sum : FLOW_INFINITE;
}

/* The last search for levels found every vertex that still reaches the sink. */
bool flow_in_cut(const FlowNetwork *net, int edge)
{
    return net->level[net->from[edge]] < 0 && net->level[net->to[edge]] >= 0;
}
