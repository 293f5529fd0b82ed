/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Requests for tests that run passes without the driver. */
#ifndef SCRIMP_TESTS_PLAN_REQUEST_H
#define SCRIMP_TESTS_PLAN_REQUEST_H

#include "passes/pass.h"

/* What these settings and the graph's remat section (g may be NULL: none) ask for; a mistake among
 * them fails the test. */
PlanRequest request_of(Pool *pool, const Graph *g, PlanSettings settings);

#endif
