/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Figures and bounds of a rematerialization, and the messages about them.  Called by whoever
 * reports a plan: pass_remat for models, external_plan for graphs from elsewhere. */
#ifndef SCRIMP_PASSES_REMAT_REPORT_H
#define SCRIMP_PASSES_REMAT_REPORT_H

#include "passes/remat/plan_request.h"

typedef struct RematSized {
    const char *name;
    int64_t bytes;
} RematSized;

/* What a rematerialization did; the figures are remat_check's. */
typedef struct RematReport {
    const RematSolver *solver; /* that made the schedule in use; NULL: none is in use */
    RematStatus status;
    bool out_of_time;      /* the time limit passed before the search was done */
    int solver_most_nodes; /* the solver does not look at graphs of more operations; 0: it did */
    const RematSolver *other_solver; /* asked for, and not the default; else NULL */
    bool infeasible_proven;     /* no schedule at all is within the budget; else none was found */
    int64_t budget_bytes;       /* INT64_MAX: none was given */
    int64_t min_feasible_bytes; /* smallest budget the solver can meet (when infeasible, or budget =
                                   min) */
    int64_t persistent_bytes, keep_all_peak_bytes, peak_bytes;
    int64_t lower_bound_bytes; /* remat_peak_lower_bound */
    const char *bound_node;    /* the operation that forces it, */
    int64_t bound_workspace_bytes;
    RematSized *bound_tensors; /* and what is in memory then, the largest first */
    int n_bound_tensors;
    int64_t order_bound_bytes; /* no order without recomputation needs less; 0 = not computed,
                                  because something is recomputed */
    /* Times are compared with that of one step under every budget: nothing recomputed, no masks. */
    double base_cost;                    /* its time, by the cost model */
    double overhead_lower_bound_percent; /* no schedule within the budget has less, with masks or
                                            without; INFINITY: none is within it */
    double overhead_percent;             /* time of recomputation and masks */
    const CostModel *cost;
    double step_cost;       /* of the schedule, by that model */
    double forward_percent; /* one forward pass */
    int recomputed_ops;
    const char *loops; /* which keep fewer of their carries, in words; NULL: all keep all */
    int treewidth;     /* of the tree decomposition that the solver made; 0: it made none */
    double solve_seconds;
} RematReport;

/* Fills the report's bounds for its budget_bytes, base_cost and recomputed_ops, from p's relaxation
 * where there is one; names are copied to pool. */
void bound_report_fill(Pool *pool, const RematProblem *p, const SolveContext *c,
                       RematReport *report);
/* Which solver was asked for (NULL: the best of all), and which limits it met with these options.
 */
void bound_report_limits(const RematSolver *only, const RematOptions *o, const RematProblem *p,
                         RematReport *report);
/* Another problem may be solved instead: the smaller of both bounds. */
void bound_report_also(Pool *pool, const RematProblem *p, const SolveContext *c,
                       RematReport *report);

/* E401 of a report whose min_feasible_bytes is above its budget: what was asked for, the smallest
 * plan that was found, and the bound where it reads otherwise; then what is in memory
 * where the bound is reached: its bytes add up to the bound.  way_out: what else the help offers,
 * or "". */
RematError bound_report_infeasible(Pool *pool, const RematReport *report, Budget asked,
                                   const char *way_out);

#endif
