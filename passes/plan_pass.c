/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The memory plan of the graph in its order, checked before anyone relies on it. */
#include "ir/support/bug.h"
#include "passes/checksum.h"
#include "passes/pass.h"
#include "passes/too_large.h"

bool pass_plan(PassContext *ctx)
{
    const char *fault;
    if (!memplan_is_countable(ctx->graph))
        return memplan_too_large(ctx);
    ctx->plan = memplan_graph(ctx->pool, ctx->graph, MEMPLAN_FINAL, ctx->placement_cache);
    if (ctx->checksums)
        plan_add_checksums(ctx->pool, ctx->graph, ctx->plan);
    Pool *scratch = pool_new_child(ctx->pool);
    if (!memplan_graph_check(scratch, ctx->graph, ctx->plan, &fault))
        BUG("the memory plan is wrong: %s", fault);
    pool_free(scratch);
    return true;
}
