/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Says of every loop how many bytes the values of its body take while a step runs, so that the plan
 * of the graph around it knows. */
#include "passes/loops.h"
#include "passes/memplan/loop_plan.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

void plan_loops(Pool *pool, Graph *g)
{
    for (size_t k = 0; k < g->order.len; k++) {
        Node *n = graph_node(g, g->order.data[k]);
        if (!node_is_loop(n))
            continue;
        plan_loops(pool, n->body);
        Pool *scratch = pool_new_child(pool);
        int64_t bytes = loop_plan(scratch, n)->arena_bytes;
        pool_free(scratch);
        node_set_attr(g, n, (Attr){.key = ATTR_arena, .u.i = bytes});
    }
}

bool pass_loops(PassContext *ctx)
{
    plan_loops(ctx->pool, ctx->graph);
    return true;
}
