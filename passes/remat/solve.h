/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The best answer of the solvers.  Called by pass_remat for the steps of models and by
 * external_plan for graphs from elsewhere. */
#ifndef SCRIMP_PASSES_REMAT_SOLVE_H
#define SCRIMP_PASSES_REMAT_SOLVE_H

#include "passes/remat/model/solver.h"

/* The least time within the budget (ties: the smaller peak), or, with REMAT_MIN_MEMORY or when
 * nothing fits, the smallest peak (ties: the least time), of all solvers that are in_portfolio or
 * of `only`.  The order of answers that do not fit is improved.  Always an answer that remat_check
 * accepts, be it above the budget. */
RematAnswer remat_solve(const RematProblem *p, const RematSolver *only, const RematOptions *o,
                        Pool *pool);

#endif
