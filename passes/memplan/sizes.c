/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What values take in an arena. */
#include "ir/support/bug.h"
#include "passes/memplan/memplan.h"

int64_t memplan_rounded(int64_t bytes)
{
    int64_t sum;
    if (!size_add(bytes, MEMPLAN_ALIGN - 1, &sum))
        BUG("a size overflows");
    return sum / MEMPLAN_ALIGN * MEMPLAN_ALIGN;
}

int64_t memplan_value_bytes(const Graph *g, ValueId v)
{
    return memplan_rounded(type_bytes(value_type(g, v)));
}

bool memplan_is_countable(const Graph *g)
{
    int64_t sum = 0;
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *n = graph_node(g, g->order.data[k]);
        bool ok = size_add(sum, node_workspace_bytes(g, n), &sum);
        for (int i = 0; i < n->n_out; i++)
            ok = ok && size_add(sum, type_bytes(value_type(g, n->out[i])), &sum) &&
                 size_add(sum, MEMPLAN_ALIGN, &sum);
        if (!ok || sum > (int64_t)1 << 60)
            return false;
    }
    return true;
}
