/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random problems x all solvers x budgets, at the level of plain data: every schedule passes the
 * replay, keeps what it promises, and is the same the second time.  SCRIMP_PROBLEMS: how many, from
 * SCRIMP_FIRST_PROBLEM on. */
#include "check.h"
#include "passes/remat/bounds/bound.h"
#include "passes/remat/cache/solution_cache.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/solvers.h"
#include "tests/support/layered_problem.h"
#include "tests/support/sample.h"

#include <string.h>

static bool same_schedule(const RematSchedule *a, const RematSchedule *b)
{
    return a->len == b->len && memcmp(a->node, b->node, (size_t)a->len * sizeof *a->node) == 0;
}

/* Asked again, and with nothing remembered, the answer is the same. */
static void check_again(Pool *pool, const RematProblem *p, const RematSolver *solver,
                        const RematOptions *o, const RematSchedule *s, const char *name)
{
    RematOptions forgetful = *o;
    RematSchedule again = {0};
    forgetful.context.solution_cache = NULL;
    solver->solve(p, &forgetful, pool, &again);
    CHECK_MSG(same_schedule(s, &again), "%s, %s: not deterministic", name, solver->name);
}

static void check_solver(Pool *parent, const RematProblem *p, const RematSolver *solver,
                         SolutionCache *cache, const char *name)
{
    static const int percents[] = {100, 70, 45, 20, 0};
    RematSchedule base = remat_base_schedule(parent, p);
    RematFigures keep_all = remat_check(parent, p, &base);
    double last_time = 0;
    for (int k = 0; k < 5; k++) {
        Pool *pool = pool_new_child(parent);
        int64_t spare = keep_all.peak_bytes - p->persistent_bytes;
        RematOptions o = {.budget_bytes = p->persistent_bytes + spare * percents[k] / 100,
                          .max_steps = 100000,
                          .effort = sample_effort(),
                          .context.solution_cache = cache};
        RematSchedule s = {0};
        RematStatus status = solver->solve(p, &o, pool, &s);
        RematFigures f = remat_check(pool, p, &s);
        int node;
        CHECK_MSG(f.ok, "%s, %s at %d%%: %s", name, solver->name, percents[k], f.fault);
        bool fits = f.peak_bytes <= o.budget_bytes;
        CHECK_MSG(fits ? status != REMAT_INFEASIBLE
                       : status == REMAT_INFEASIBLE || status == REMAT_LIMIT,
                  "%s, %s at %d%%: status %d", name, solver->name, percents[k], (int)status);
        CHECK(f.peak_bytes <= keep_all.peak_bytes);
        CHECK(f.peak_bytes >= remat_peak_lower_bound(p, pool, 0, &node));
        CHECK_MSG(!fits || f.time >= last_time, "%s, %s: time falls at %d%%", name, solver->name,
                  percents[k]);
        last_time = fits ? f.time : last_time;
        if (k == 2)
            check_again(pool, p, solver, &o, &s, name);
        pool_free(pool);
    }
}

static void check_problem(int seed)
{
    Pool *pool = pool_new();
    Random r = {(uint64_t)seed};
    RematProblem *p =
        seed % 4 == 0 ? layered_problem(pool, &r, 2 + random_below(&r, 6), 1 + random_below(&r, 3))
        : seed % 4 == 2 ? random_overwriting(pool, &r, 2 + seed % 37)
                        : random_problem(pool, &r, 2 + seed % 37);
    SolutionCache *cache = solution_cache_new(pool, NULL);
    for (const RematSolver *solver = remat_solvers; solver->name; solver++)
        if (!solver->needs_milp || p->n_nodes < 7) /* seconds each beyond */
            check_solver(pool, p, solver, cache, pool_printf(pool, "problem %d", seed));
    pool_free(pool);
}

int main(void)
{
    int n = sample_number("SCRIMP_PROBLEMS", 60), first = sample_number("SCRIMP_FIRST_PROBLEM", 1);
    printf("problems %d to %d\n", first, first + n - 1);
    for (int seed = first; seed < first + n && !check_failures; seed++)
        check_problem(seed);
    return test_result();
}
