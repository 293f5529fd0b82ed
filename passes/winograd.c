/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Convolutions that have Winograd's form, where the train section wants that: they are marked.  The
 * shape alone decides (ir/winograd.h), before anything is known of a budget, so that operations
 * that run again have the same form. */
#include "ir/winograd.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

static void mark(Graph *g)
{
    for (size_t i = 0; i < g->order.len; i++) {
        Node *n = graph_node(g, g->order.data[i]);
        int m = winograd_choice(g, n);
        if (m)
            node_set_attr(g, n, (Attr){.key = ATTR_winograd, .u.i = m});
        if (n->body)
            mark(n->body);
    }
}

bool pass_winograd(PassContext *ctx)
{
    if (ctx->graph->train.winograd && !ctx->for_device)
        mark(ctx->graph);
    return true;
}
