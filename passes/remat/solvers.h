/* The solvers, and what they share. */
#ifndef SCRIMP_PASSES_REMAT_SOLVERS_H
#define SCRIMP_PASSES_REMAT_SOLVERS_H

#include "passes/remat/remat.h"

RematSolve remat_none, remat_scrimp, remat_chen, remat_random, remat_twremat;
RematSolve remat_feng_linear, remat_feng_closeset, remat_feng_acg;
RematSolve remat_kusumoto_approx, remat_kusumoto_exact, remat_kusumoto_exhaustive;

/* Every node once, in the base order. */
RematSchedule remat_base_schedule(Pool *pool, const RematProblem *p);

/* No second run of @keep, nothing of @recompute made before the loss and read after it. */
bool remat_obeys_hints(Pool *scratch, const RematProblem *p, const RematSchedule *s);

/* The schedule as a problem of its own: every run a node, every run's outputs tensors.  Nodes are
 * in the order of the schedule; node k of the result is run k.  The schedule must be one that
 * remat_check accepts. */
RematProblem *remat_expand(Pool *pool, const RematProblem *p, const RematSchedule *s);

/* Of the whole step, or of the step as a chain. */
RematSolve remat_xla_greedy, remat_mincut, remat_dtr, remat_revolve, remat_chain_dp;
/* These two need a library that may not be installed (milp.h). */
RematSolve remat_checkmate_ilp, remat_checkmate_lp;
bool remat_solver_needs_milp(const RematSolver *s);
/* Of the largest graph that the solver looks at; 0: any.  NULL: the best of all. */
int remat_solver_most_nodes(const RematSolver *s);

#endif
