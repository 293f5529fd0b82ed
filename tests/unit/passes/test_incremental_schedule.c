/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The scrimp solver's parts: the profile of incremental_schedule.c against the replay after random
 * changes, the tree against plain arrays, the front's order, and whole answers: hints, budgets,
 * other solvers.
 */
#include "check.h"
#include "ir/support/range_max.h"
#include "passes/remat/cache/solution_cache.h"
#include "passes/remat/model/pareto_front.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/search/incremental_schedule.h"
#include "passes/remat/solvers.h"
#include "tests/support/random_problem.h"

#include <math.h>
#include <string.h>

/* next[i]: the first place from i on that is above the limit, n when there is none. */
static void check_above(const RangeMax *t, const int64_t *plain, int n, int64_t limit, int *next)
{
    range_max_above(t, limit, next, n);
    for (int i = n - 1, expected = n; i >= 0; i--) {
        expected = plain[i] > limit ? i : expected;
        CHECK(next[i] == expected);
    }
}

static void test_tree(void)
{
    enum { MOST = 40 };
    Random r = {11};
    for (int n = 1; n <= MOST; n++) {
        Pool *pool = pool_new();
        RangeMax t = range_max_new(pool, n);
        int64_t plain[MOST] = {0};
        for (int k = 0; k < 60; k++) {
            int a = random_below(&r, n), b = random_below(&r, n),
                value = random_below(&r, 100) - 50;
            range_max_add(&t, a, b, value);
            for (int i = a; i <= b; i++)
                plain[i] += value;
            int64_t most = INT64_MIN, top = 0;
            for (int i = a < b ? a : b; i <= (a < b ? b : a); i++)
                most = plain[i] > most ? plain[i] : most;
            CHECK(range_max_most(&t, a < b ? a : b, a < b ? b : a) == most);
            for (int i = 1; i < n; i++)
                top = plain[i] > plain[top] ? i : top;
            CHECK(range_max_argmost(&t) == top);
            int next[MOST];
            check_above(&t, plain, n, random_below(&r, 200) - 100, next);
        }
        pool_free(pool);
    }
}

static void check_state(Pool *parent, const RematProblem *p, IncrementalSchedule *s, uint64_t seed)
{
    Pool *pool = pool_new_child(parent);
    RematSchedule schedule = incremental_schedule(pool, s);
    RematFigures f = remat_check(pool, p, &schedule);
    CHECK_MSG(f.ok, "seed %llu: %s", (unsigned long long)seed, f.fault);
    CHECK_MSG(f.peak_bytes == incremental_peak(s, NULL), "seed %llu: replay %lld, slots %lld",
              (unsigned long long)seed, (long long)f.peak_bytes,
              (long long)incremental_peak(s, NULL));
    CHECK(fabs(f.time - incremental_time(s)) < 1e-9 && f.recomputed == incremental_recomputed(s));
    pool_free(pool);
}

/* Adds or removes a random pair. */
static void change(const RematProblem *p, IncrementalSchedule *s, Random *r)
{
    int node = random_below(r, p->n_nodes), slot = random_below(r, p->n_nodes);
    if (!incremental_allowed(s, node, slot))
        return;
    if (incremental_has(s, node, slot))
        incremental_remove(s, node, slot);
    else
        incremental_add(s, node, slot);
}

static void test_changes(uint64_t seed)
{
    Pool *pool = pool_new();
    Random r = {seed};
    RematProblem *p = random_problem(pool, &r, 3 + random_below(&r, 25));
    IncrementalSchedule *s = incremental_new(pool, p);
    check_state(pool, p, s, seed);
    for (int k = 0; k < 60; k++) {
        change(p, s, &r);
        if (random_below(&r, 3) == 0)
            check_state(pool, p, s, seed);
    }
    incremental_commit(s);
    RematSchedule before = incremental_schedule(pool, s);
    int64_t peak = incremental_peak(s, NULL);
    for (int k = 0; k < 30; k++)
        change(p, s, &r);
    incremental_rollback(s, 0);
    RematSchedule after = incremental_schedule(pool, s);
    CHECK(before.len == after.len && incremental_peak(s, NULL) == peak &&
          memcmp(before.node, after.node, (size_t)before.len * sizeof *before.node) == 0);
    incremental_clear(s);
    CHECK(incremental_recomputed(s) == 0);
    check_state(pool, p, s, seed);
    pool_free(pool);
}

/* Points have rising peaks and falling times, whatever is offered, and keep what they were. */
static void test_front(void)
{
    Pool *pool = pool_new();
    Random r = {5};
    RematProblem *p = random_problem(pool, &r, 30);
    IncrementalSchedule *s = incremental_new(pool, p);
    ParetoFront f = {.pool = pool};
    for (int k = 0; k < 300; k++) {
        change(p, s, &r);
        RematSchedule now = incremental_schedule(pool, s);
        RematFigures figures = remat_check(pool, p, &now);
        bool takes = pareto_takes(&f, figures.peak_bytes, figures.time);
        CHECK(pareto_offer(&f, figures.peak_bytes, figures.time, &now) == takes);
        const ParetoPoint *x = pareto_within(&f, figures.peak_bytes);
        CHECK(x && x->time <= figures.time * (1 + 1e-9));
    }
    for (size_t i = 1; i < f.points.len; i++)
        CHECK(f.points.data[i - 1].peak_bytes < f.points.data[i].peak_bytes &&
              f.points.data[i - 1].time > f.points.data[i].time);
    CHECK(!pareto_within(&f, f.points.data[0].peak_bytes - 1));
    for (size_t i = 0; i < f.points.len; i++) {
        const ParetoPoint *x = &f.points.data[i];
        RematFigures figures = remat_check(pool, p, &x->schedule);
        CHECK(figures.ok && figures.peak_bytes == x->peak_bytes && figures.time == x->time);
        CHECK(pareto_within(&f, x->peak_bytes) == x);
        CHECK(i == 0 || pareto_above(&f, x->peak_bytes - 1) == x);
    }
    pool_free(pool);
}

static RematFigures solve(Pool *pool, const RematProblem *p, RematSolve *solver,
                          SolutionCache *cache, int64_t budget)
{
    RematOptions o = {.budget_bytes = budget, .context.solution_cache = cache};
    RematSchedule s;
    RematStatus status = solver(p, &o, pool, &s);
    RematFigures f = remat_check(pool, p, &s);
    bool fits = status == REMAT_FEASIBLE || status == REMAT_OPTIMAL;
    CHECK(f.ok && fits == (f.peak_bytes <= budget));
    return f;
}

/* A memory of one search changes no answer; time rises as the budget falls; nobody else
 * is faster within the same budget. */
static void test_budgets(uint64_t seed)
{
    Pool *pool = pool_new();
    Random r = {seed};
    RematProblem *p = random_problem(pool, &r, 8 + random_below(&r, 20));
    SolutionCache *cache = solution_cache_new(pool, NULL);
    RematSchedule base = remat_base_schedule(pool, p);
    RematFigures all = remat_check(pool, p, &base);
    double last = 0;
    for (int percent = 100; percent >= 30; percent -= 10) {
        int64_t budget =
            p->persistent_bytes + (all.peak_bytes - p->persistent_bytes) * percent / 100;
        RematFigures f = solve(pool, p, remat_scrimp, cache, budget);
        RematFigures chen = solve(pool, p, remat_chen, NULL, budget);
        RematFigures kusumoto = solve(pool, p, remat_kusumoto_approx, NULL, budget);
        if (percent == 60) {
            RematFigures again = solve(pool, p, remat_scrimp, NULL, budget);
            CHECK(again.peak_bytes == f.peak_bytes && again.time == f.time);
        }
        if (f.peak_bytes > budget)
            break;
        CHECK(f.time >= last);
        CHECK(chen.peak_bytes > budget || chen.time >= f.time * (1 - 1e-9));
        CHECK(kusumoto.peak_bytes > budget || kusumoto.time >= f.time * (1 - 1e-9));
        last = f.time;
    }
    pool_free(pool);
}

/* @keep: never twice; @recompute: again behind the loss. */
static void test_hints(uint64_t seed)
{
    Pool *pool = pool_new();
    Random r = {seed};
    RematProblem *p = random_problem(pool, &r, 24);
    for (int n = 0; n < p->n_nodes; n++)
        p->node[n].hint = random_below(&r, 5) ? REMAT_AUTO : REMAT_KEEP;
    for (int64_t budget = p->persistent_bytes; budget < 4000; budget += 300) {
        RematOptions o = {.budget_bytes = budget};
        RematSchedule s;
        remat_scrimp(p, &o, pool, &s);
        int runs[24] = {0};
        for (int i = 0; i < s.len; i++)
            runs[s.node[i]]++;
        for (int n = 0; n < p->n_nodes; n++)
            CHECK(runs[n] == 1 || p->node[n].hint != REMAT_KEEP);
    }
    pool_free(pool);
}

int main(void)
{
    test_tree();
    for (uint64_t seed = 1; seed <= 200; seed++)
        test_changes(seed);
    test_front();
    for (uint64_t seed = 300; seed <= 312; seed++)
        test_budgets(seed);
    test_hints(77);
    return test_result();
}
