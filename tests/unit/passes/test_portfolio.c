/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The scrimp solver on several threads: the same schedules for every budget on any number of them,
 * and out of memory in one of them ends the search without a leak. */
#include "check.h"

#include "ir/support/clock.h"
#include "passes/remat/cache/solution_cache.h"
#include "passes/remat/solve.h"
#include "passes/remat/solvers.h"
#include "tests/support/layered_problem.h"

#include <string.h>

/* All that a search finds. */
static const ParetoFront *search(Pool *pool, const RematProblem *p, RematOptions o)
{
    SolutionCache *cache = solution_cache_new(pool, NULL);
    o.context.solution_cache = cache;
    o.budget_bytes = 0;
    remat_solve(p, remat_solver_find("scrimp"), &o, pool);
    return &cache->front;
}

static bool same_front(const ParetoFront *a, const ParetoFront *b)
{
    bool same = a->points.len == b->points.len;
    for (size_t k = 0; k < a->points.len && same; k++) {
        const ParetoPoint *x = &a->points.data[k], *y = &b->points.data[k];
        same =
            x->peak_bytes == y->peak_bytes && x->time == y->time &&
            x->schedule.len == y->schedule.len &&
            memcmp(x->schedule.node, y->schedule.node, (size_t)x->schedule.len * sizeof(int)) == 0;
    }
    return same;
}

/* Small graphs with all searches of the table, and a larger one. */
static void test_thread_counts(void)
{
    static const struct {
        int layers, width;
        double effort;
    } cases[] = {{5, 1, 1}, {6, 2, 0.5}, {60, 2, 0.03}};
    for (int i = 0; i < 3; i++) {
        Pool *pool = pool_new();
        Random r = {40 + (uint64_t)i};
        RematProblem *p = layered_problem(pool, &r, cases[i].layers, cases[i].width);
        RematOptions o = {.seed = 5, .effort = cases[i].effort, .n_threads = 1};
        const ParetoFront *one = search(pool, p, o);
        CHECK(one->points.len > 1);
        for (o.n_threads = 0; o.n_threads <= 2; o.n_threads += 2) {
            const ParetoFront *several = search(pool, p, o);
            CHECK_MSG(same_front(one, several), "%d nodes, %d threads", p->n_nodes, o.n_threads);
        }
        pool_free(pool);
    }
}

/* All threads see that time is up. */
static void test_time_limit(void)
{
    Pool *pool = pool_new();
    Random r = {3};
    RematProblem *p = layered_problem(pool, &r, 70, 1);
    double before = clock_seconds();
    search(pool, p,
           (RematOptions){.effort = 1e6, .deadline_seconds = before + 0.2, .n_threads = 2});
    CHECK_MSG(clock_seconds() - before < 20, "%g s", clock_seconds() - before);
    pool_free(pool);
}

static bool search_failing(const RematProblem *p, int threads, uint64_t fail_at)
{
    jmp_buf oom;
    Pool *volatile pool = pool_new();
    volatile bool done = false;
    if (setjmp(oom) == 0) {
        pool_on_oom(pool, &oom);
        pool_fail_at(fail_at);
        search(pool, p, (RematOptions){.effort = 0.01, .n_threads = threads});
        done = true;
    }
    pool_fail_at(0);
    pool_free(pool);
    return done;
}

static void test_no_memory(void)
{
    Pool *pool = pool_new();
    Random r = {8};
    RematProblem *p = layered_problem(pool, &r, 5, 1);
    for (int threads = 1; threads <= 2; threads++) {
        uint64_t k = 1;
        while (k < 10000000 && !search_failing(p, threads, k))
            k += k / 4 + 1;
        CHECK_MSG(k > 1000 && k < 10000000, "%llu allocations", (unsigned long long)k);
    }
    pool_free(pool);
}

int main(void)
{
    test_thread_counts();
    test_time_limit();
    test_no_memory();
    return test_result();
}
