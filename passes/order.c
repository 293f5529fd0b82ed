/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The order of operations with the smallest peak (docs/memory-plan.md). */
#include "passes/pass.h"
#include "passes/remat/model/step_problem.h"
#include "passes/remat/order/reorder.h"
#include "passes/too_large.h"

bool pass_order(PassContext *ctx)
{
    if (!memplan_is_countable(ctx->graph))
        return memplan_too_large(ctx);
    Pool *scratch = pool_new_child(ctx->pool);
    RematMapping mapping;
    RematProblem *p = remat_problem_from_graph(scratch, ctx->graph, NULL, &mapping);
    RematSchedule s = reorder_nodes(scratch, p, 0, 0);
    remat_apply(ctx->graph, p, &mapping, &s, "");
    pool_free(scratch);
    return true;
}
