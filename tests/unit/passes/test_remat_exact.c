/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the solver says of small problems against exact search over all schedules: it never claims
 * more than is true, and how far it stays behind is printed.  SCRIMP_PROBLEMS: how many. */
#include "check.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/solve.h"
#include "passes/remat/solvers.h"
#include "tests/support/exact_remat.h"
#include "tests/support/random_problem.h"

#include <stdlib.h>

typedef struct Tally {
    int problems, proven, least_peaks; /* with the least peak found */
    int budgets, met, least_times;
    double peak_gap, time_gap; /* sums, relative */
} Tally;

static RematAnswer solve(Pool *pool, const RematProblem *p, int64_t budget, bool *proven)
{
    RematNotes notes = {0};
    RematOptions o = {.budget_bytes = budget, .notes = &notes};
    RematAnswer a = remat_solve(p, remat_solver_find("scrimp"), &o, pool);
    *proven = notes.exact;
    return a;
}

static void check_least_peak(Pool *pool, const RematProblem *p, int64_t least, int index,
                             Tally *tally)
{
    bool proven;
    int64_t peak = solve(pool, p, 0, &proven).figures.peak_bytes;
    CHECK_MSG(peak >= least, "case %d: peak %lld, but none is below %lld", index, (long long)peak,
              (long long)least);
    CHECK_MSG(!proven || peak == least, "case %d: peak %lld is not the least, %lld", index,
              (long long)peak, (long long)least);
    tally->proven += proven;
    tally->problems++;
    tally->least_peaks += peak == least;
    tally->peak_gap += (double)(peak - least) / (double)least;
}

static void check_budget(Pool *pool, const RematProblem *p, int64_t budget, int index, Tally *tally)
{
    RematSchedule best;
    double least = (double)exact_remat(pool, p, budget, false, &best);
    bool proven;
    RematAnswer a = solve(pool, p, budget, &proven);
    bool met = a.figures.peak_bytes <= budget;
    CHECK_MSG(!met || a.figures.time >= least, "case %d: time %g, but none is below %g", index,
              a.figures.time, least);
    CHECK_MSG(!proven || (met && a.figures.time == least), "case %d: time %g is not the least, %g",
              index, a.figures.time, least);
    tally->budgets++;
    tally->met += met;
    tally->least_times += met && a.figures.time == least;
    tally->time_gap += met ? a.figures.time / least - 1 : 0;
}

static void check_problem(Pool *pool, const RematProblem *p, int index, Tally *tally)
{
    RematSchedule best, base = remat_base_schedule(pool, p);
    int64_t high = remat_check(pool, p, &base).peak_bytes;
    int64_t least = exact_remat(pool, p, INT64_MAX, true, &best);
    check_least_peak(pool, p, least, index, tally);
    for (int k = 0; k < 4; k++)
        check_budget(pool, p, least + (high - least) * k / 4, index, tally);
}

int main(void)
{
    enum { SEED = 4711 };
    const char *text = getenv("SCRIMP_PROBLEMS");
    int n = text ? atoi(text) : 150;
    Random r = {SEED};
    Tally t = {0};
    printf("seed %d, %d problems\n", SEED, n);
    for (int k = 0; k < n && !check_failures; k++) {
        Pool *pool = pool_new();
        RematProblem *p = k % 2 ? random_training(pool, &r, 2 + random_below(&r, 3))
                                : random_problem(pool, &r, 3 + random_below(&r, 8));
        check_problem(pool, p, k, &t);
        pool_free(pool);
    }
    printf("%d of %d problems solved exactly; least peak found for %d, in the mean %.3f%% above\n",
           t.proven, t.problems, t.least_peaks, 100 * t.peak_gap / t.problems);
    printf("%d of %d budgets met, %d in the least time, in the mean %.3f%% above\n", t.met,
           t.budgets, t.least_times, 100 * t.time_gap / t.met);
    CHECK(t.proven > t.problems * 9 / 10);
    return test_result();
}
