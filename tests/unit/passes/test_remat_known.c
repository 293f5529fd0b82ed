/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Each solver where the right answer is known: revolve's binomial numbers, the dynamic program on
 * equal stages, the greedy's order, blocks of the XLA greedy, a minimum cut by hand, DTR on a
 * chain. */
#include "check.h"
#include "passes/remat/papers/chain_dp.h"
#include "passes/remat/papers/revolve.h"
#include "passes/remat/search/greedy.h"
#include "passes/remat/solvers.h"
#include "tests/support/random_problem.h"

#include <math.h>

enum { UNIT = 64 };

static RematProblem *empty_problem(Pool *pool, int n)
{
    RematProblem *p = POOL_NEW(pool, RematProblem);
    *p = (RematProblem){.pool = pool, .loss_node = -1};
    p->node = POOL_ARRAY(pool, (size_t)n, RematNode);
    p->tensor = POOL_ARRAY(pool, (size_t)n + 4, RematTensor);
    return p;
}

/* Makes one tensor of so many units from up to two others (-1 = none); returns it. */
static int add_node(RematProblem *p, int units, double cost, int a, int b)
{
    RematNode *node = &p->node[p->n_nodes];
    *node = (RematNode){.name = "node", .cost = cost, .rerun = true};
    node->in = POOL_ARRAY(p->pool, 2, int);
    node->out = POOL_ARRAY(p->pool, 1, int);
    if (a >= 0)
        problem_read(node, a);
    if (b >= 0)
        problem_read(node, b);
    node->n_out = 1;
    return node->out[0] = problem_tensor(p, UNIT * units, p->n_nodes++, false);
}

static RematFigures solve(Pool *pool, const RematProblem *p, const char *name, int budget_units,
                          RematStatus *status)
{
    RematOptions o = {.budget_bytes = budget_units * UNIT};
    RematSchedule s;
    *status = remat_solver_find(name)->solve(p, &o, pool, &s);
    return remat_check(pool, p, &s);
}

static int64_t least_advances(int n, int c, int64_t table[33][9])
{
    if (n == 1)
        return 0;
    if (c == 1)
        return (int64_t)n * (n - 1) / 2;
    int64_t best = INT64_MAX;
    for (int m = 1; m < n; m++) {
        int64_t t = m + table[n - m][c - 1] + table[m][c];
        best = t < best ? t : best;
    }
    return best;
}

/* Griewank and Walther's closed form and splits against the recurrence that they solve. */
static void test_revolve_numbers(void)
{
    int64_t table[33][9] = {{0}};
    for (int n = 1; n <= 32; n++)
        for (int c = 1; c <= 8; c++) {
            table[n][c] = least_advances(n, c, table);
            CHECK_MSG(revolve_advances(n, c) == table[n][c], "n %d, c %d", n, c);
            if (n < 2 || c < 2)
                continue;
            int m = revolve_split(n, c);
            CHECK_MSG(m >= 1 && m < n && m + table[n - m][c - 1] + table[m][c] == table[n][c],
                      "n %d, c %d: split %d", n, c, m);
        }
    CHECK(revolve_advances(10, 3) == 15); /* beta(3, 2) = 10: 2 * 10 - beta(4, 1) */
}

/* Where only one tape fits, and c states beside it (the one that the stage starts from, and all
 * snapshots but the initial state), the program must find revolve's numbers;
 * where all tapes fit, nothing runs twice. */
static void test_equal_stages(Pool *pool)
{
    enum { TAPE = 16 };
    ChainStage stage[12];
    for (int n = 1; n <= 12; n++) {
        stage[n - 1] = (ChainStage){1, 1, TAPE, 1, TAPE, 0};
        for (int c = 1; c <= 5; c++) {
            ChainPlan plan = chain_plan(pool, stage, n, TAPE + c);
            double cost = plan.cost[chain_plan_at(&plan, 0, n - 1, TAPE + c)];
            CHECK_MSG(cost == (double)(n + revolve_advances(n, c)), "n %d, c %d: %g", n, c, cost);
            CHECK(isinf(plan.cost[chain_plan_at(&plan, 0, n - 1, TAPE - 1)]));
        }
        ChainPlan plan = chain_plan(pool, stage, n, n * TAPE);
        CHECK(plan.cost[chain_plan_at(&plan, 0, n - 1, n * TAPE)] == n);
    }
}

/* A dear stage between cheap ones: it is the one whose tape is kept. */
static void test_unequal_stages(Pool *pool)
{
    ChainStage stage[3] = {{1, 1, 4, 1, 4, 0}, {50, 1, 4, 1, 4, 0}, {1, 1, 4, 1, 4, 0}};
    ChainPlan plan = chain_plan(pool, stage, 3, 9);
    /* 1 forward, 50 with its tape, 1 with its tape, and the first again */
    CHECK(plan.cost[chain_plan_at(&plan, 0, 2, 9)] == 53);
}

/* Where a backward part needs more than the forward one, it decides what fits: alone, and beside
 * the tapes and outputs before it. */
static void test_backward_memory(Pool *pool)
{
    ChainStage stage[2] = {{1, 1, 2, 1, 2, 0}, {1, 1, 2, 1, 2, 5}};
    ChainPlan plan = chain_plan(pool, stage, 2, 9);
    CHECK(isinf(plan.cost[chain_plan_at(&plan, 1, 1, 6)]));
    CHECK(plan.cost[chain_plan_at(&plan, 1, 1, 7)] == 1);
    CHECK(isinf(plan.cost[chain_plan_at(&plan, 0, 1, 7)]));
    CHECK(plan.cost[chain_plan_at(&plan, 0, 1, 8)] == 3); /* the first runs twice, */
    CHECK(plan.cost[chain_plan_at(&plan, 0, 1, 9)] == 2); /* or its tape is kept */
}

/* v0 .. v(n-1), and back: b_i reads b_(i+1) and v_i. */
static RematProblem *chain_and_back(Pool *pool, int n)
{
    RematProblem *p = empty_problem(pool, 2 * n);
    for (int i = 0; i < 2 * n; i++) {
        add_node(p, 1, 1, i - 1, i < n ? -1 : 2 * n - 1 - i);
        p->node[i].forward = i < n;
    }
    p->tensor[2 * n - 1].keep = true;
    p->loss_node = n - 1;
    return p;
}

static void test_chain(Pool *pool, const char *name, int budget_units, double most_time)
{
    RematProblem *p = chain_and_back(pool, 64);
    RematStatus status;
    RematFigures f = solve(pool, p, name, budget_units, &status);
    printf("%s: peak %d, time %g of %g\n", name, (int)(f.peak_bytes / UNIT), f.time, f.time_once);
    CHECK_MSG(status == REMAT_FEASIBLE && f.ok && f.time <= most_time, "%s: %g", name, f.time);
}

/* Values of equal size, made from one that is there anyway, wait for readers behind the peak: what
 * the greedy drops first are the cheapest, as many as it takes. */
static void test_cheapest_drops(Pool *pool)
{
    enum { N = 24, DROPS = 9 };
    RematProblem *p = empty_problem(pool, 2 * N + 1);
    int x = problem_tensor(p, UNIT, -1, true), value[N];
    p->persistent_bytes = UNIT;
    for (int i = 0; i < N; i++) /* costs 1 .. N in a mixed order */
        value[i] = add_node(p, 1, 1 + (7 * i) % N, x, -1);
    add_node(p, 1, 1, x, -1);
    p->node[N].workspace = 64 * UNIT;
    for (int i = 0; i < N; i++)
        p->tensor[add_node(p, 0, 1, value[i], -1)].keep = true;
    uint64_t random = 1;
    GreedySearch *s = greedy_new(pool, p, &random);
    s->target_bytes = incremental_peak(s->slots, NULL) - DROPS * UNIT;
    s->most_work = INT32_MAX;
    CHECK(greedy_reduce(s));
    RematSchedule schedule = incremental_schedule(pool, s->slots);
    RematFigures f = remat_check(pool, p, &schedule);
    CHECK_MSG(f.ok && f.recomputed == DROPS && f.peak_bytes <= s->target_bytes &&
                  f.time == f.time_once + DROPS * (DROPS + 1) / 2,
              "%d again, %g more", f.recomputed, f.time - f.time_once);
}

/* A drop is as cheap as its time a byte that it frees: b costs less than a to make again, but keeps
 * what it is made from. */
static void test_drop_that_keeps(Pool *pool)
{
    RematProblem *p = empty_problem(pool, 6);
    int x = problem_tensor(p, UNIT, -1, true), u = add_node(p, 1, 1, x, -1);
    p->persistent_bytes = UNIT;
    p->node[0].rerun = false;
    int a = add_node(p, 2, 2, x, -1), b = add_node(p, 2, 1.5, u, -1);
    add_node(p, 1, 1, x, -1);
    p->node[3].workspace = 64 * UNIT;
    p->tensor[add_node(p, 0, 1, a, -1)].keep = true;
    p->tensor[add_node(p, 0, 1, b, -1)].keep = true;
    uint64_t random = 1;
    GreedySearch *s = greedy_new(pool, p, &random);
    s->target_bytes = incremental_peak(s->slots, NULL) - UNIT;
    s->most_work = INT32_MAX;
    CHECK(greedy_reduce(s));
    RematSchedule schedule = incremental_schedule(pool, s->slots);
    RematFigures f = remat_check(pool, p, &schedule);
    CHECK_MSG(f.ok && f.time == f.time_once + 2, "%g more", f.time - f.time_once);
}

/* w -> a -> b -> c -> d -> use, big, end(d).  While `big` runs, d is in the way.  To make d again
 * alone, c would have to live on, and so on: only all four together free anything. */
static void test_xla_blocks(Pool *pool)
{
    RematProblem *p = empty_problem(pool, 7);
    int w = problem_tensor(p, UNIT, -1, true);
    int a = add_node(p, 1, 1, w, -1), b = add_node(p, 1, 1, a, -1), c = add_node(p, 1, 1, b, -1);
    int d = add_node(p, 1, 1, c, -1), use = add_node(p, 1, 1, d, -1);
    int big = add_node(p, 1, 1, use, -1);
    p->node[5].workspace = 4 * UNIT;
    p->tensor[add_node(p, 1, 1, big, d)].keep = true;
    RematStatus status;
    RematFigures f = solve(pool, p, "xla_greedy", 7, &status);
    CHECK(status == REMAT_FEASIBLE && f.ok && f.recomputed == 4 && f.peak_bytes == 7 * UNIT);
    f = solve(pool, p, "xla_greedy", 8, &status);
    CHECK(status == REMAT_FEASIBLE && f.recomputed == 0);
    f = solve(pool, p, "xla_greedy", 6, &status);
    CHECK(status == REMAT_INFEASIBLE);
}

/* x -> a(16) -> b(1) -> c(16) -> d(16) -> e(16) -> l, and back through everything; b, d and e are
 * dear. d and e are alive together whatever is done; the cheapest way to have a and c away then
 * saves b, and makes a from x and c from b again. */
static void test_mincut(Pool *pool)
{
    RematProblem *p = empty_problem(pool, 12);
    int x = problem_tensor(p, UNIT, -1, false), v[6];
    static const int units[] = {16, 1, 16, 16, 16, 1}, cost[] = {1, 100, 1, 100, 100, 1};
    for (int k = 0; k < 6; k++) {
        v[k] = add_node(p, units[k], cost[k], k ? v[k - 1] : x, -1);
        p->node[k].forward = true;
    }
    p->loss_node = 5;
    int g = v[5];
    for (int k = 5; k >= 0; k--)
        g = add_node(p, 1, 1, g, k ? v[k - 1] : x);
    p->tensor[g].keep = true;
    RematStatus status;
    RematFigures f = solve(pool, p, "mincut", 38, &status);
    CHECK_MSG(status == REMAT_FEASIBLE && f.ok && f.time == f.time_once + 2, "%g, peak %d", f.time,
              (int)(f.peak_bytes / UNIT));
}

int main(void)
{
    Pool *pool = pool_new();
    test_revolve_numbers();
    test_equal_stages(pool);
    test_unequal_stages(pool);
    test_backward_memory(pool);
    test_cheapest_drops(pool);
    test_drop_that_keeps(pool);
    test_xla_blocks(pool);
    test_mincut(pool);
    test_chain(pool, "revolve", 12, 320);
    test_chain(pool, "chain_dp", 12, 320);
    test_chain(pool, "dtr", 18,
               256); /* 2 sqrt(64) and what runs: a bounded number of runs a layer */
    test_chain(pool, "xla_greedy", 50, 256);
    pool_free(pool);
    return test_result();
}
