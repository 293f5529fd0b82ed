/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checkmate's program with R and S between 0 and 1, and two-phase rounding.
 *
 * Source: Jain et al. 2020, section 5: S is rounded, then R is the smallest that goes with it.
 * Differs: S is rounded at several thresholds, not at random; the programs are those of eight
 * budgets between the lower bound and the base order's peak, whatever the budget; what pruning
 * makes of each answer is scored, too.  Graphs of more than 80 nodes end with REMAT_LIMIT: the
 * program grows with nodes times edges. */
#include "passes/remat/bounds/bound.h"
#include "passes/remat/model/runs.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/papers/candidates.h"
#include "passes/remat/papers/checkmate.h"
#include "passes/remat/solvers.h"

enum { MAX_NODES = 80, BUDGETS = 8, PRUNE_STEPS = 2 };

static void try_budget(Candidates *c, const RematProblem *p, int64_t budget)
{
    static const double thresholds[] = {0.25, 0.5, 0.75};
    Pool *once = pool_new_child(c->pool);
    Checkmate *m = checkmate_new(once, p, budget, false);
    milp_column(m->milp, 0, 1, 1,
                true); /* without integers Cbc prints Clp's log whatever is asked */
    double *x = POOL_ARRAY(once, (size_t)milp_columns(m->milp) + 1, double);
    if (milp_solve(m->milp, 1, 0, x) == MILP_OPTIMAL)
        for (int k = 0; k < 3; k++) {
            RematSchedule s = checkmate_round(once, m, x, thresholds[k]);
            candidates_try_schedule(c, &s);
            candidates_try_runs(c, c->view->late, s.node, s.len, PRUNE_STEPS);
        }
    pool_free(once);
}

RematStatus remat_checkmate_lp(const RematProblem *p, const RematOptions *o, Pool *pool,
                               RematSchedule *out)
{
    Pool *scratch = pool_new_child(pool);
    Candidates *c = candidates_new(scratch, forward_view_new(scratch, p), o);
    RematSchedule base = remat_base_schedule(scratch, p);
    int64_t low = remat_peak_lower_bound(p, scratch, o->context.bounds_until, &(int){0});
    int64_t high = remat_check(scratch, p, &base).peak_bytes;
    bool all = p->n_nodes <= MAX_NODES && milp_is_available();
    for (int k = 0; k < BUDGETS && all; k++) {
        try_budget(c, p, low + (high - low) / BUDGETS * k);
        all = !remat_out_of_time(o);
    }
    RematStatus status = candidates_answer(c, pool, out);
    pool_free(scratch);
    return status == REMAT_INFEASIBLE && !all ? REMAT_LIMIT : status;
}
