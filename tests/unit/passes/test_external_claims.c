/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What plan --graph claims of small graphs, `optimal`, `infeasible_proven` and all bounds, against
 * a search of all schedules that shares no code with scrimp (tests/support/brute_graph.h).  Nothing
 * that is claimed may be false, and most of what is true has to be claimed. SCRIMP_GRAPHS: how
 * many; SCRIMP_FIRST_GRAPH: the first seed. */
#include "check.h"
#include "passes/remat/cache/solution_cache.h"
#include "passes/remat/solvers.h"
#include "tests/support/brute_graph.h"
#include "tests/support/plan_request.h"
#include "tests/support/random_external.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_GRAPHS = 500, ALL_SOLVERS_EVERY = 50, EXTREME_EVERY = 4 };

typedef struct Tally {
    int answers, optimal, least; /* least: as good as any, whether that is claimed or not */
    int refused, proven, impossible;
} Tally;

typedef struct Case {
    Pool *pool;
    ExternalGraph *g;
    BruteGraph brute;
    int64_t least_peak, least_order; /* of all schedules; of those without a second run */
    double time_once;
    double slack; /* by which times may differ for no reason but rounding, relative */
    int seed;
    const char *solver, *objective, *budget;
    struct SolutionCache *cache; /* one search answers all budgets */
    Tally *tally;
} Case;

static const char *case_text(const Case *c)
{
    return pool_printf(c->pool, "seed %d, %s, objective %s, budget '%s'", c->seed, c->solver,
                       c->objective, c->budget);
}

static void check_refusal(const Case *c, const RematReport *r, const BrutePrice *best)
{
    CHECK_MSG(!r->infeasible_proven || !best->reached,
              "%s: called impossible, but a schedule has a peak of %lld within %lld", case_text(c),
              (long long)best->peak, (long long)r->budget_bytes);
    c->tally->refused++;
    c->tally->proven += r->infeasible_proven;
    c->tally->impossible += !best->reached;
}

static void check_answer(const Case *c, const ExternalPlan *plan, const BrutePrice *best)
{
    const RematReport *r = &plan->report;
    bool memory = strcmp(c->objective, "memory") == 0;
    bool is_least =
        memory ? r->peak_bytes == c->least_peak : plan->figures.time <= best->time * (1 + c->slack);
    CHECK_MSG(best->reached && plan->figures.time >= best->time * (1 - c->slack) &&
                  r->peak_bytes >= c->least_peak,
              "%s: time %g and peak %lld are better than any schedule's", case_text(c),
              plan->figures.time, (long long)r->peak_bytes);
    CHECK_MSG(r->status != REMAT_OPTIMAL || is_least,
              "%s: time %g and peak %lld are called optimal; best are %g and %lld", case_text(c),
              plan->figures.time, (long long)r->peak_bytes, best->time, (long long)c->least_peak);
    c->tally->answers++;
    c->tally->optimal += r->status == REMAT_OPTIMAL;
    c->tally->least += is_least;
}

static void check_bounds(const Case *c, const RematReport *r, const BrutePrice *best)
{
    double overhead = r->overhead_lower_bound_percent;
    double most = 100 * (best->time - c->time_once) / c->time_once;
    CHECK_MSG(r->lower_bound_bytes <= c->least_peak, "%s: the bound %lld is above the peak %lld",
              case_text(c), (long long)r->lower_bound_bytes, (long long)c->least_peak);
    CHECK_MSG(r->order_bound_bytes <= c->least_order, "%s: no order needs less than %lld, but %lld",
              case_text(c), (long long)r->order_bound_bytes, (long long)c->least_order);
    CHECK_MSG(isinf(overhead) ? !best->reached
                              : !best->reached || c->time_once == 0 ||
                                    overhead <= most + 100 * c->slack * (best->time / c->time_once),
              "%s: at least %g%% is too high", case_text(c), overhead);
}

static void check_plan(const Case *c)
{
    RematError error = {0};
    PlanSettings settings = {
        .solver = c->solver, .objective = c->objective, .budget = c->budget, .n_threads = 1};
    PlanRequest request = request_of(c->pool, NULL, settings);
    ExternalPlan plan;
    bool ok = external_plan(c->pool, c->g, &request, c->cache, &plan, &error);
    CHECK_MSG(ok || strcmp(error.code, "E401") == 0, "%s: %s", case_text(c), error.message);
    BrutePrice best = brute_best(&c->brute, plan.report.budget_bytes, false, true);
    if (ok)
        check_answer(c, &plan, &best);
    else
        check_refusal(c, &plan.report, &best);
    check_bounds(c, &plan.report, &best);
}

/* No budget, `min`, parts, and what lies around the least peak of all. */
static void check_budgets(Case *c)
{
    static const char *const fixed[] = {"", "min", "0%", "30%", "60%", "90%", "100%"};
    for (size_t k = 0; k < sizeof fixed / sizeof *fixed; k++) {
        c->budget = fixed[k];
        check_plan(c);
    }
    for (int64_t beside = -1; beside <= 1; beside++) {
        int64_t bytes = c->least_peak + beside;
        c->budget = pool_printf(c->pool, "%lldB", (long long)(bytes > 0 ? bytes : 0));
        check_plan(c);
    }
}

static void check_solvers(Case *c, bool all)
{
    const char *const objectives[] = {"time", "memory"};
    for (int k = 0; k < 2; k++) {
        c->objective = objectives[k];
        c->solver = "scrimp";
        check_budgets(c);
        c->solver = "best";
        if (all)
            check_budgets(c);
        for (const RematSolver *s = remat_solvers; s->name && all; s++) {
            c->solver = s->name;
            if (strcmp(s->name, "scrimp") != 0 && !s->needs_milp)
                check_budgets(c);
        }
    }
}

static void check_graph(Pool *pool, int seed, Tally *tally)
{
    Random r = {(uint64_t)seed};
    random_next(&r);
    bool forward = random_below(&r, 6) == 0;
    int n_nodes = forward ? 1 + random_below(&r, 4) : 2 + random_below(&r, 6);
    Case c = {.pool = pool, .seed = seed, .cache = solution_cache_new(pool, NULL), .tally = tally};
    c.g = random_external(pool, &r, n_nodes, forward, forward ? 6 : 10);
    if (seed % EXTREME_EVERY == 0) {
        make_extreme(c.g, &r);
        c.slack = 1e-11;
    }
    CHECK_MSG(brute_graph(c.g, &c.brute), "seed %d: too large", seed);
    BrutePrice least = brute_best(&c.brute, INT64_MAX, true, true);
    BrutePrice order = brute_best(&c.brute, INT64_MAX, true, false);
    CHECK_MSG(least.reached && order.reached, "seed %d: no schedule", seed);
    for (int n = 0; n < c.brute.n_nodes; n++)
        c.time_once += c.brute.time[n];
    c.least_peak = least.peak;
    c.least_order = order.peak;
    check_solvers(&c, seed % ALL_SOLVERS_EVERY < 2);
}

/* A chain of n nodes, walked back, with whole times in units of 2^exponent. */
static ExternalGraph *scaled_chain(Pool *pool, int n, int exponent)
{
    ExternalGraph *g = POOL_NEW(pool, ExternalGraph);
    *g = (ExternalGraph){true, n, POOL_ARRAY(pool, (size_t)n, ExternalNode)};
    for (int k = 0; k < n; k++) {
        ExternalNode *node = &g->node[k];
        *node = (ExternalNode){.time = ldexp(1 + k % 3, exponent), .rerun = true, .n_out = 1};
        node->out = POOL_ARRAY(pool, 1, ExternalOutput);
        node->out[0].bytes = 100 + k % 2;
        node->in = POOL_ARRAY(pool, 1, ExternalRef);
        node->n_in = k > 0;
        node->in[0] = (ExternalRef){k - 1, 0};
    }
    return g;
}

static RematReport report_of(Pool *pool, const ExternalGraph *g, const char *budget)
{
    RematError error = {0};
    PlanRequest request = request_of(pool, NULL, (PlanSettings){.budget = budget, .n_threads = 1});
    ExternalPlan plan;
    external_plan(pool, g, &request, NULL, &plan, &error);
    return plan.report;
}

/* In another unit of time, however small or large, the same is said of the answer and the same
 * proven, but for a bound that is rounded to the smallest number that there is. */
static void check_unit(Pool *pool, int n, int exponent, const char *budget)
{
    RematReport a = report_of(pool, scaled_chain(pool, n, 0), budget);
    RematReport b = report_of(pool, scaled_chain(pool, n, exponent), budget);
    double bound = b.overhead_lower_bound_percent, wanted = a.overhead_lower_bound_percent;
    double rounding = exponent < -1000 ? 100 / a.base_cost : 1e-9;
    CHECK_MSG(wanted > 0, "%d nodes at %s leave nothing to prove", n, budget);
    CHECK_MSG(a.status == b.status && fabs(bound - wanted) < rounding &&
                  bound <= b.overhead_percent + 1e-9,
              "%d nodes at %s in units of 2^%d: status %d, +%g%%, at least %g%%; of 1: %d, %g, %g",
              n, budget, exponent, (int)b.status, b.overhead_percent, bound, (int)a.status,
              a.overhead_percent, wanted);
}

static void check_units(void)
{
    const int exponents[] = {-1074, -1060, -1022, -990, -979, -300, 300, 980};
    for (size_t k = 0; k < sizeof exponents / sizeof *exponents; k++) {
        Pool *pool = pool_new();
        check_unit(pool, 5, exponents[k], "80%");
        check_unit(pool, 14, exponents[k], "50%");
        check_unit(pool, 14, exponents[k], "min");
        pool_free(pool);
    }
}

int main(void)
{
    const char *count = getenv("SCRIMP_GRAPHS"), *from = getenv("SCRIMP_FIRST_GRAPH");
    int n = count ? atoi(count) : N_GRAPHS, first = from ? atoi(from) : 1;
    Tally t = {0};
    check_units();
    printf("seeds %d to %d\n", first, first + n - 1);
    for (int seed = first; seed < first + n && check_failures < 20; seed++) {
        Pool *pool = pool_new();
        check_graph(pool, seed, &t);
        pool_free(pool);
    }
    printf("%d answers: %d are as good as any, %d are called optimal\n", t.answers, t.least,
           t.optimal);
    printf("%d refusals: %d are of what is impossible, %d are called proven\n", t.refused,
           t.impossible, t.proven);
    CHECK(t.optimal > t.least * 9 / 10 && t.proven > t.impossible * 9 / 10);
    return test_result();
}
