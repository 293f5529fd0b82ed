/* The bounds in a RematReport, and in words.  Called by whoever reports a plan: pass_remat for
 * models, external_plan for graphs from elsewhere. */
#ifndef SCRIMP_PASSES_REMAT_BOUND_REPORT_H
#define SCRIMP_PASSES_REMAT_BOUND_REPORT_H

#include "passes/pass.h"
#include "passes/remat/solve.h"

/* Fills the report's bounds for its budget_bytes, base_cost and recomputed_ops, from p's relaxation
 * where it has one; names are copied to pool. */
void bound_report_fill(Pool *pool, const RematProblem *p, RematReport *report);
/* Which solver was asked for, and which limits it met. */
void bound_report_limits(const RematRequest *request, const RematProblem *p, RematReport *report);
/* Another problem may be solved instead: the smaller of both bounds. */
void bound_report_also(Pool *pool, const RematProblem *p, RematReport *report);

/* E401 of a report whose min_feasible_bytes is above its budget: what was asked for, the smallest
 * plan that was found, and the bound where it reads otherwise; then what is in memory
 * where the bound is reached: its bytes add up to the bound.  way_out: what else the help offers,
 * or "". */
RematError bound_report_infeasible(Pool *pool, const RematReport *report, Budget asked,
                                   const char *way_out);

#endif
