/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What solvers have found, kept in memory for the rest of the test: many plans of one model, under
 * several budgets or with and without masks, then take one search of each problem, as in `scrimp
 * plan` with its store.  Plans are those of a search of their own. */
#ifndef SCRIMP_TESTS_SOLUTIONS_H
#define SCRIMP_TESTS_SOLUTIONS_H

#include "passes/remat/cache/solution_cache.h"

/* For PassContext.solution_cache of one or several builds; lives in the pool.  Not for builds at
 * the same time on several threads. */
SolutionCache *solutions_kept(Pool *pool);

#endif
