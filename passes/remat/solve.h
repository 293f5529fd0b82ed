/* From what a user asks for to the best answer of the solvers.  Called by pass_remat for the steps
 * of models and by external_plan for graphs from elsewhere. */
#ifndef SCRIMP_PASSES_REMAT_SOLVE_H
#define SCRIMP_PASSES_REMAT_SOLVE_H

#include "passes/remat/model/budget.h"
#include "passes/remat/model/cost.h"
#include "passes/remat/model/solver.h"

/* The settings of a plan as the user writes them: NULL or "" is the default. */
typedef struct RematSettings {
    const char *budget;        /* "8GiB", "40%", "min"; default: none */
    const char *solver;        /* a name of the table, or "best"; default: scrimp */
    const char *objective;     /* "time" (default) or "memory" */
    const char *cost;          /* a name of cost_models; default: roofline */
    uint64_t seed;             /* of solvers that draw */
    double time_limit_seconds; /* of solvers; bounds take a quarter of it more.  0 = none */
    double effort;             /* of scrimp's search: 1 = as much as usual, 0 = 1 */
    int stop_at;               /* twremat: see RematOptions; 0 = it tries several */
    int n_threads;             /* of scrimp's search; 0 = all cores */
} RematSettings;

/* The same, understood. */
typedef struct RematRequest {
    Budget budget;
    const RematSolver *only; /* NULL: the best of all */
    const CostModel *cost;
    RematOptions options; /* without the budget; the deadline counts from remat_request_read */
    double bounds_until;  /* with a time limit: when the bounds that are reported end; else 0 */
} RematRequest;

/* A user's mistake: code, what is wrong, a way out (or NULL). */
typedef struct RematError {
    const char *code, *message, *help;
} RematError;

/* False with E403 (budget), E404 (solver), E405 (objective) or E412 (cost). */
bool remat_request_read(Pool *pool, const RematSettings *s, RematRequest *out, RematError *error);

/* The least time within the budget (ties: the smaller peak), or, with REMAT_MIN_MEMORY or when
 * nothing fits, the smallest peak (ties: the least time), of all solvers that are in_best or of
 * `only`.  The order
 * of answers that do not fit is improved.  Always an answer that remat_check accepts, be it above
 * the budget. */
RematAnswer remat_solve(const RematProblem *p, const RematSolver *only, const RematOptions *o,
                        Pool *pool);

#endif
