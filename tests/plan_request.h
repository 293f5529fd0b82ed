/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Requests for tests that run passes without the driver. */
#ifndef SCRIMP_TESTS_PLAN_REQUEST_H
#define SCRIMP_TESTS_PLAN_REQUEST_H

#include "check.h"
#include "passes/pass.h"

/* What these settings and the graph's remat section (g may be NULL: none) ask for; a mistake among
 * them fails the test. */
static inline PlanRequest request_of(Pool *pool, const Graph *g, PlanSettings settings)
{
    PlanSettings section = g ? remat_section(&g->train) : (PlanSettings){0};
    PlanRequest request;
    RematError e;
    settings = plan_settings_merge(&settings, &section);
    CHECK_MSG(plan_request_read(pool, &settings, &request, &e), "%s: %s", e.code, e.message);
    return request;
}

#endif
