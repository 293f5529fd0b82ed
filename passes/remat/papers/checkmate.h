/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checkmate's program: which node runs in which stage, and which values are kept between stages.
 * Shared by checkmate_ilp (exact) and checkmate_lp (rounding). */
#ifndef SCRIMP_PASSES_REMAT_PAPERS_CHECKMATE_H
#define SCRIMP_PASSES_REMAT_PAPERS_CHECKMATE_H

#include "ir/support/milp.h"
#include "passes/remat/model/problem.h"

typedef struct Checkmate {
    const RematProblem *p;
    Milp *milp;
    int *run, *save; /* [stage][node]: columns of R and S; -1 = always 0, -2 = always 1 */
} Checkmate;

/* The program for a budget; integer: R and S are 0 or 1, else anything between. */
Checkmate *checkmate_new(Pool *pool, const RematProblem *p, int64_t budget_bytes, bool integer);

/* S taken as 1 from this value on, and the smallest R that goes with it: a list of runs. */
RematSchedule checkmate_round(Pool *pool, const Checkmate *c, const double *x, double threshold);

#endif
