/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plans a graph from elsewhere for a budget. */
#include "passes/remat/external/external.h"

#include "ir/support/clock.h"
#include "passes/remat/planner.h"

bool external_plan(Pool *pool, const ExternalGraph *g, const PlanRequest *request,
                   struct SolutionCache *cache, ExternalPlan *out, RematError *error)
{
    double begin = clock_seconds();
    *out = (ExternalPlan){0};
    const RematProblem *p = external_problem(pool, g, error);
    if (!p)
        return false;
    PlanStep step = {.p = p,
                     .context.solution_cache = cache,
                     .every = external_every_rerun(pool, g, p),
                     .way_out = ""};
    RematPlan plan;
    PlanStep *const forms[] = {&step};
    bool fits = remat_plan(pool, request, begin, &(PlanForms){forms, 1, &step}, &plan, error);
    out->report = plan.report;
    out->schedule = plan.schedule;
    out->figures = plan.figures;
    out->report.solve_seconds = clock_seconds() - begin;
    if (fits) {
        const RematOptions o = plan_request_options(request, begin);
        external_arena(pool, p, &out->schedule, remat_out_of_time(&o), out);
    }
    return fits;
}
