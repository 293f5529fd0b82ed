/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The moves of the scrimp solver (greedy.h) on a step of thousands of nodes: looking at all that
 * every drop would bring with it takes more work there than making the drops that are needed, and
 * the greedy once ended before the first of them. */
#include "check.h"
#include "passes/remat/search/greedy.h"
#include "tests/support/zoo_problem.h"

static void check_target(Pool *pool, const RematProblem *p, int percent)
{
    uint64_t random = 1;
    GreedySearch *x = greedy_new(pool, p, &random);
    int64_t keep_all = incremental_peak(x->slots, NULL), before = incremental_work(x->slots);
    x->target_bytes = p->persistent_bytes + (keep_all - p->persistent_bytes) * percent / 100;
    x->most_work = 60 * p->n_nodes;
    bool fits = greedy_reduce(x);
    int64_t peak = incremental_peak(x->slots, NULL);
    CHECK_MSG(fits && peak <= x->target_bytes, "%d%%: %lld bytes after %lld updates", percent,
              (long long)peak, (long long)(incremental_work(x->slots) - before));
    greedy_restore(x);
    RematSchedule s = incremental_schedule(pool, x->slots);
    RematFigures f = remat_check(pool, p, &s);
    CHECK(f.ok && f.peak_bytes == incremental_peak(x->slots, NULL) &&
          f.peak_bytes <= x->target_bytes);
}

int main(void)
{
    Pool *pool = pool_new();
    Elaborated lowered;
    const ZooProblem nasnet = {"nascell", {"cell=nasnet", "N=64"}};
    RematProblem *p = zoo_problem(pool, &lowered, &nasnet);
    for (int percent = 70; p && percent >= 20; percent -= 10)
        check_target(pool, p, percent);
    elaborated_free(&lowered);
    pool_free(pool);
    return test_result();
}
