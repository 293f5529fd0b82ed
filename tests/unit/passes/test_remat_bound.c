/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The bounds against exact search over all schedules of random problems. */
#include "check.h"
#include "passes/remat/bounds/bound.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/order/reorder.h"
#include "tests/support/exact_remat.h"
#include "tests/support/random_problem.h"

#include <math.h>
#include <string.h>

typedef struct Tally {
    int budgets, with_overhead, positive, tight; /* positive, tight: of those with overhead */
    int problems, peak_tight, order_tight;
    double part; /* sum of bound over exact overhead */
} Tally;

static void check_replay(Pool *pool, const RematProblem *p, const RematSchedule *s, int64_t peak,
                         int64_t time, int index)
{
    RematFigures f = remat_check(pool, p, s);
    CHECK_MSG(f.ok, "case %d: %s", index, f.fault);
    CHECK_MSG(f.peak_bytes <= peak, "case %d: search %lld, replay %lld", index, (long long)peak,
              (long long)f.peak_bytes);
    CHECK_MSG(time < 0 || f.time == (double)time, "case %d: time", index);
}

static void check_budget(Pool *pool, const RematProblem *p, int64_t budget, int index, Tally *tally)
{
    double once = 0;
    RematSchedule best;
    for (int n = 0; n < p->n_nodes; n++)
        once += p->node[n].cost;
    int64_t time = exact_remat(pool, p, budget, false, &best);
    CHECK_MSG(time >= once, "case %d: no schedule where search for the peak found one", index);
    if (time < 0)
        return;
    check_replay(pool, p, &best, budget, time, index);
    int node;
    double exact = (double)time - once,
           bound = remat_overhead_lower_bound(p, budget, pool, 0, &node);
    CHECK_MSG(bound >= 0 && bound <= exact, "case %d, budget %lld: overhead %g, bound %.17g", index,
              (long long)budget, exact, bound);
    CHECK((bound > 0) == (node >= 0));
    tally->budgets++;
    tally->with_overhead += exact > 0;
    tally->positive += exact > 0 && bound > 0;
    tally->part += exact > 0 ? bound / exact : 0;
    tally->tight += exact > 0 && bound > exact * (1 - 1e-6);
    RematFigures f = remat_check(pool, p, &best);
    RematPeakBound peak = remat_peak_bound_under_time(pool, p, exact, 0);
    CHECK_MSG(peak.bytes <= f.peak_bytes, "case %d: peak %lld in %g more, bound %lld", index,
              (long long)f.peak_bytes, exact, (long long)peak.bytes);
}

/* Every node once: the exact peak, our bound, and the one of reorder.h, which looks at spans only.
 */
static int64_t check_orders(Pool *pool, const RematProblem *p, int index, Tally *tally)
{
    RematProblem once = *p;
    RematSchedule best;
    once.node = POOL_ARRAY(pool, (size_t)p->n_nodes + 1, RematNode);
    memcpy(once.node, p->node, (size_t)p->n_nodes * sizeof *p->node);
    for (int n = 0; n < p->n_nodes; n++)
        once.node[n].rerun = false;
    int64_t peak = exact_remat(pool, &once, INT64_MAX, true, &best);
    int64_t bound = remat_peak_bound_under_time(pool, p, 0, 0).bytes;
    int64_t spans = reorder_bound(pool, p, node_graph_new(pool, p));
    CHECK_MSG(bound <= peak && spans <= peak, "case %d: order %lld, bound %lld", index,
              (long long)peak, (long long)bound);
    tally->order_tight += bound == peak;
    return peak;
}

static void check_problem(Pool *pool, const RematProblem *p, int index, Tally *tally)
{
    RematSchedule best;
    int node;
    int64_t peak = exact_remat(pool, p, INT64_MAX, true, &best);
    int64_t once = check_orders(pool, p, index, tally);
    int64_t bound = remat_peak_lower_bound(p, pool, 0, &node);
    check_replay(pool, p, &best, peak, -1, index);
    CHECK_MSG(bound <= peak && node >= 0, "case %d: peak %lld, bound %lld", index, (long long)peak,
              (long long)bound);
    tally->problems++;
    tally->peak_tight += bound == peak;
    CHECK(isinf(remat_overhead_lower_bound(p, bound - 1, pool, 0, &node)) && node >= 0);
    for (int k = 0; k < 4; k++)
        check_budget(pool, p, peak + (once - peak) * k / 4, index, tally);
}

/* After their time the bounds end at the next look: smaller, and never wrong. */
static void check_end(Random *r)
{
    int smaller = 0;
    for (int k = 0; k < 50; k++) {
        Pool *pool = pool_new();
        RematProblem *p = random_training(pool, r, 10 + random_below(r, 30));
        RematSchedule base = remat_base_schedule(pool, p);
        int64_t peak = remat_check(pool, p, &base).peak_bytes;
        int64_t least = remat_peak_bound_under_time(pool, p, INFINITY, 0).bytes;
        double time = remat_overhead_lower_bound(p, (peak + least) / 2, pool, 0, NULL);
        int64_t bytes = remat_peak_bound_under_time(pool, p, INFINITY, 1e-9).bytes;
        double early = remat_overhead_lower_bound(p, (peak + least) / 2, pool, 1e-9, NULL);
        CHECK(bytes > 0 && bytes <= least && early >= 0 && early <= time);
        smaller += early < time || bytes < least;
        pool_free(pool);
    }
    CHECK_MSG(smaller > 10, "%d bounds ended early", smaller);
}

int main(void)
{
    enum { SEED = 90210, CASES = 700 };
    Random r = {SEED};
    Tally tally = {0};
    printf("seed %d\n", SEED);
    for (int k = 0; k < CASES && !check_failures; k++) {
        Pool *pool = pool_new();
        RematProblem *p = k % 2 ? random_training(pool, &r, 2 + random_below(&r, 3))
                                : random_problem(pool, &r, 3 + random_below(&r, 6));
        for (int n = 0; n < p->n_nodes; n++)
            p->node[n].hint = random_below(&r, 16) ? REMAT_AUTO : REMAT_KEEP;
        check_problem(pool, p, k, &tally);
        pool_free(pool);
    }
    printf("%d problems: peak bound exact on %d, order bound on %d\n", tally.problems,
           tally.peak_tight, tally.order_tight);
    printf(
        "%d budgets, %d need recomputation: overhead bound positive on %d, exact on %d, mean part "
        "%.2f\n",
        tally.budgets, tally.with_overhead, tally.positive, tally.tight,
        tally.part / tally.with_overhead);
    /* what a bound that has become weak would miss */
    CHECK(tally.problems == CASES && tally.with_overhead > 900 && tally.tight > 30);
    CHECK(tally.positive > tally.with_overhead * 9 / 10 && tally.part > tally.with_overhead * 0.3);
    CHECK(tally.peak_tight > CASES * 8 / 10 && tally.order_tight > CASES * 9 / 10);
    check_end(&r);
    return test_result();
}
