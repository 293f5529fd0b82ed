/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checksums of gradients, which `verify` compares.  They are added after planning, so that `verify`
 * runs the same plan as training: each reads its gradient right after the operation that makes it,
 * when it is in memory in any plan, and has its result and workspace behind the plan's arena.  A
 * gradient that is only an intermediate of a fused operation, or a piece of another value, has
 * none. */
#include "passes/checksum.h"

#include "ir/strided_view.h"
#include "ir/workspace.h"

#include <string.h>

/* The parameter's gradient when the node makes one, the first time. */
static ValueId gradient_of(const Graph *g, const Node *n)
{
    for (int k = 0; k < n->n_out; k++) {
        const char *name = graph_value(g, n->out[k])->name;
        if (strncmp(name, "$d.", 3) == 0 && !strchr(name, '~') && value_is_dense(g, n->out[k]))
            return n->out[k];
    }
    return VALUE_NONE;
}

static int64_t append(MemPlan *plan, int64_t bytes)
{
    int64_t at = plan->arena_bytes;
    bytes = memplan_rounded(bytes);
    plan->arena_bytes += bytes;
    plan->appended_bytes += bytes;
    return at;
}

/* The node runs at the end of the order so far. */
static NodeId add_checksum(Graph *g, ValueId gradient)
{
    const char *path = graph_value(g, gradient)->name;
    ValueId sum = graph_add(g, OP_checksum, &gradient, 1, NULL,
                            pool_printf(g->pool, "%%checksum.%s", path + 3), (Loc){0});
    graph_add_output(g, pool_printf(g->pool, "checksum:%s", path), sum);
    return graph_value(g, sum)->def;
}

static void place(const Graph *g, MemPlan *plan, NodeId id)
{
    const Node *n = graph_node(g, id);
    int64_t workspace = node_workspace_bytes(g, n);
    plan->offset[n->out[0]] = append(plan, type_bytes(value_type(g, n->out[0])));
    plan->workspace_offset[id] = workspace > 0 ? append(plan, workspace) : -1;
}

static int64_t *longer(Pool *pool, const int64_t *array, size_t n, size_t more)
{
    int64_t *copy = POOL_ARRAY(pool, n + more + 1, int64_t);
    memcpy(copy, array, n * sizeof *array);
    return copy;
}

void plan_add_checksums(Pool *pool, Graph *g, MemPlan *plan)
{
    size_t n = g->order.len, len = 0;
    NodeId *before = POOL_ARRAY(pool, n + 1, NodeId), *order = POOL_ARRAY(pool, 2 * n + 1, NodeId);
    memcpy(before, g->order.data, n * sizeof *before);
    plan->offset = longer(pool, plan->offset, g->values.len, n);
    plan->workspace_offset = longer(pool, plan->workspace_offset, g->nodes.len, n);
    for (size_t k = 0; k < n; k++) {
        ValueId gradient = gradient_of(g, graph_node(g, before[k]));
        order[len++] = before[k];
        if (gradient == VALUE_NONE)
            continue;
        order[len] = add_checksum(g, gradient);
        place(g, plan, order[len++]);
    }
    memcpy(g->order.data, order, len * sizeof *order);
}
