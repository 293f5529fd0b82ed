/* SPDX-License-Identifier: GPL-3.0-or-later */
/* scrimp against every other solver at budgets from the least that any of them reaches to that of
 * keeping everything. */
#ifndef SCRIMP_TESTS_NEVER_BEATEN_H
#define SCRIMP_TESTS_NEVER_BEATEN_H

#include "passes/remat/model/problem.h"

/* most_nodes_exact: up to how many nodes the integer program is asked as well. */
void check_never_beaten(Pool *pool, const RematProblem *p, int most_nodes_exact, bool all_steps,
                        const char *name);

#endif
