/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as a graph from elsewhere: refused with a message, or planned within the limits of its
 * answer.  Long ones are only read. */
#include "fuzz_target.h"

#include "passes/remat/external/external.h"

#include <stdlib.h>

enum { MOST_PLANNED = 12 };

static void plan(Pool *pool, const ExternalGraph *g, const char *budget)
{
    RematError error = {0};
    PlanSettings settings = {.budget = budget};
    PlanRequest request;
    ExternalPlan out;
    if (!plan_request_read(pool, &settings, &request, &error))
        abort();
    bool ok = external_plan(pool, g, &request, NULL, &out, &error);
    if (ok != (out.report.status != REMAT_INFEASIBLE) || (!ok && !error.message))
        abort();
    if (ok != (out.figures.peak_bytes <= out.report.budget_bytes) || !out.figures.ok ||
        (ok && out.arena_lower_bound_bytes != out.figures.peak_bytes) ||
        out.report.lower_bound_bytes > out.figures.peak_bytes)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Pool *pool = pool_new();
    RematError error = {0};
    const ExternalGraph *g = external_read(pool, (const char *)data, size, &error);
    const RematProblem *p = g ? external_problem(pool, g, &error) : NULL;
    if (!p && (!error.code || !error.message))
        abort();
    if (p && p->n_nodes <= MOST_PLANNED) {
        plan(pool, g, "");
        plan(pool, g, "50%");
        plan(pool, g, "min");
    }
    pool_free(pool);
    return 0;
}
