/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checkmate's integer program (checkmate.c), solved exactly by COIN-OR Cbc: an oracle for small
 * graphs.
 *
 * Source: Jain et al. 2020, section 4.  Differs: graphs of more than 40 nodes, and programs that
 * need more branch-and-bound nodes than the limit allows, end with REMAT_LIMIT.  notes->proven says
 * that the answer is the fastest under the program's rules. */
#include "ir/support/clock.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/papers/candidates.h"
#include "passes/remat/papers/checkmate.h"
#include "passes/remat/papers/forward_view.h"
#include "passes/remat/solve.h"
#include "passes/remat/solvers.h"

/* The limit of branch-and-bound nodes falls with the size of the program. */
enum { MAX_NODES = 40, WORK = 20 * 1000 * 1000, MOST_BRANCHES = 20000 };

static double seconds_left(const RematOptions *o)
{
    double left = o->deadline_seconds > 0 ? o->deadline_seconds - clock_seconds() : 0;
    return o->deadline_seconds > 0 && left < 1e-3 ? 1e-3 : left;
}

/* How it ended; a solution becomes a candidate. */
static MilpStatus solve_exactly(Candidates *c, const RematProblem *p, const RematOptions *o)
{
    Pool *pool = c->pool;
    RematSchedule base = remat_base_schedule(pool, p);
    int64_t budget = remat_check(pool, p, &base).peak_bytes; /* more makes no difference */
    budget = o->budget_bytes < budget ? o->budget_bytes : budget;
    Checkmate *m = checkmate_new(pool, p, budget, true);
    double *x = POOL_ARRAY(pool, (size_t)milp_columns(m->milp) + 1, double);
    int branches = WORK / (milp_terms(m->milp) + 1);
    branches = branches < MOST_BRANCHES ? branches : MOST_BRANCHES;
    MilpStatus status = milp_solve(m->milp, branches, seconds_left(o), x);
    if (status == MILP_OPTIMAL || status == MILP_FEASIBLE) {
        RematSchedule s = checkmate_round(pool, m, x, 0.5);
        candidates_try_schedule(c, &s);
    }
    return status;
}

RematStatus remat_checkmate_ilp(const RematProblem *p, const RematOptions *o, Pool *pool,
                                RematSchedule *out)
{
    Pool *scratch = pool_new_child(pool);
    Candidates *c = candidates_new(scratch, forward_view_new(scratch, p), o);
    MilpStatus ended = MILP_LIMIT;
    if (c->figures.peak_bytes <= o->budget_bytes && o->objective == REMAT_MIN_TIME &&
        c->figures.recomputed == 0)
        ended = MILP_OPTIMAL; /* nothing is faster */
    else if (p->n_nodes <= MAX_NODES && milp_is_available())
        ended = solve_exactly(c, p, o);
    if (o->notes)
        o->notes->proven = ended == MILP_OPTIMAL;
    RematStatus status = candidates_answer(c, pool, out);
    pool_free(scratch);
    if (ended == MILP_FEASIBLE || ended == MILP_LIMIT)
        return REMAT_LIMIT;
    return status;
}
