/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/never_beaten.h"

#include "check.h"
#include "ir/support/vec.h"
#include "passes/remat/bounds/bound.h"
#include "passes/remat/cache/solution_cache.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/solve.h"
#include "passes/remat/solvers.h"

#include <math.h>

enum { NEVER_BEATEN_BUDGETS = 50 };

/* What a solver came across. */
typedef struct Seen {
    Pool *pool;
    VEC(RematFigures) figures;
} Seen;

static void seen_add(void *user, const RematSchedule *s, const RematFigures *f)
{
    Seen *seen = user;
    (void)s;
    vec_push(seen->pool, &seen->figures, *f);
}

static double seen_fastest(const Seen *seen, int64_t budget)
{
    double time = INFINITY;
    for (size_t i = 0; i < seen->figures.len; i++)
        if (seen->figures.data[i].peak_bytes <= budget && seen->figures.data[i].time < time)
            time = seen->figures.data[i].time;
    return time;
}

static int64_t seen_least(const Seen *seen)
{
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < seen->figures.len; i++)
        if (seen->figures.data[i].peak_bytes < least)
            least = seen->figures.data[i].peak_bytes;
    return least;
}

/* Everything that it looks at, which does not depend on the budget, and its smallest answer as
 * `--budget min` has it.  The searches of lower sets, which may take minutes, stop after so many
 * steps, unless all_steps. */
static Seen seen_by(Pool *pool, const RematProblem *p, const RematSolver *solver, bool all_steps)
{
    Seen seen = {.pool = pool};
    RematOptions o = {.budget_bytes = 0, .seen = seen_add, .user = &seen};
    if (!all_steps && solver->solve == remat_kusumoto_exact)
        o.max_steps = 20000000;
    if (!all_steps && solver->solve == remat_kusumoto_exhaustive)
        o.max_steps = 100000;
    RematAnswer a = remat_solve(p, solver, &o, pool);
    seen_add(&seen, &a.schedule, &a.figures);
    return seen;
}

/* scrimp's time within the budget, by the replay; INFINITY when it has no answer. */
static double scrimp_time(Pool *pool, const RematProblem *p, SolutionCache *cache, int64_t budget)
{
    RematOptions o = {.budget_bytes = budget, .context.solution_cache = cache};
    RematAnswer a = remat_solve(p, remat_solver_find("scrimp"), &o, pool);
    return a.figures.peak_bytes <= budget ? a.figures.time : (double)INFINITY;
}

void check_never_beaten(Pool *pool, const RematProblem *p, int most_nodes_exact, bool all_steps,
                        const char *name)
{
    Seen other[32];
    SolutionCache *cache = solution_cache_new(pool, NULL);
    const RematSolver *solver[32];
    int n = 0, node;
    RematSchedule base = remat_base_schedule(pool, p);
    int64_t high = remat_check(pool, p, &base).peak_bytes, low = high;
    for (const RematSolver *s = remat_solvers; s->name && n < 32; s++) {
        if (s->solve == remat_scrimp || (s->needs_milp && p->n_nodes > most_nodes_exact))
            continue;
        solver[n] = s;
        other[n] = seen_by(pool, p, s, all_steps);
        low = seen_least(&other[n]) < low ? seen_least(&other[n]) : low;
        n++;
    }
    double last = INFINITY, once = remat_check(pool, p, &base).time_once;
    for (int k = 0; k < NEVER_BEATEN_BUDGETS; k++) {
        int64_t budget = low + (high - low) * k / (NEVER_BEATEN_BUDGETS - 1);
        double time = scrimp_time(pool, p, cache, budget);
        CHECK_MSG(time <= last, "%s: time rises to %g with a budget of %lld", name, time,
                  (long long)budget);
        last = time;
        for (int i = 0; i < n; i++) {
            double theirs = seen_fastest(&other[i], budget);
            CHECK_MSG(time <= theirs * (1 + 1e-9),
                      "%s at %d of %d, %lld bytes: scrimp +%.3f%%, %s +%.3f%%", name, k,
                      NEVER_BEATEN_BUDGETS - 1, (long long)budget, 100 * (time / once - 1),
                      solver[i]->name, 100 * (theirs / once - 1));
        }
        double bound = remat_overhead_lower_bound(p, budget, pool, 0, &node);
        CHECK_MSG(time - once >= bound * (1 - 1e-9), "%s: %g is below the bound", name, time);
    }
}
