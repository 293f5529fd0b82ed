/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/plan_request.h"

#include "check.h"

PlanRequest request_of(Pool *pool, const Graph *g, PlanSettings settings)
{
    PlanSettings section = g ? remat_section(&g->train) : (PlanSettings){0};
    PlanRequest request;
    RematError e;
    settings = plan_settings_merge(&settings, &section);
    CHECK_MSG(plan_request_read(pool, &settings, &request, &e), "%s: %s", e.code, e.message);
    return request;
}
