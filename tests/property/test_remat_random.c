/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random steps x solvers x budgets: schedules pass the replay, answers keep their budget, and the
 * graph that they are applied to verifies, plans to exactly the replay's peak, and computes the
 * same numbers.  SCRIMP_STEPS: how many. */
#include "check.h"
#include "ir/eval.h"
#include "ir/verify.h"
#include "passes/memplan/memplan.h"
#include "passes/remat/bounds/bound.h"
#include "passes/remat/cache/solution_cache.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/model/step_problem.h"
#include "passes/remat/order/reorder.h"
#include "passes/remat/solvers.h"
#include "tests/support/random_step.h"
#include "tests/support/sample.h"

#include <string.h>

static void set_sources(EvalState *s, const Graph *g)
{
    Random r = {7};
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *n = graph_node(g, g->order.data[k]);
        if (!node_is_source(n) || n->op == OP_const)
            continue;
        int64_t count = type_elements(value_type(g, n->out[0]));
        double *data = POOL_ARRAY(s->pool, (size_t)count, double);
        for (int64_t i = 0; i < count; i++)
            data[i] = (random_below(&r, 2001) - 1000) * 1e-3;
        eval_set(s, n->out[0], data);
    }
}

static bool same_data(const EvalState *a, ValueId va, const EvalState *b, ValueId vb)
{
    size_t count = (size_t)type_elements(value_type(a->graph, va));
    return memcmp(eval_get(a, va), eval_get(b, vb), count * sizeof(double)) == 0;
}

/* Results and new versions of persistent tensors. */
static void check_same_numbers(Pool *pool, const Graph *g, const Graph *applied)
{
    EvalState *a = eval_new(pool, g), *b = eval_new(pool, applied);
    set_sources(a, g);
    set_sources(b, applied);
    eval_run(a, true);
    eval_run(b, true);
    for (size_t i = 0; i < g->outputs.len; i++)
        CHECK_MSG(same_data(a, g->outputs.data[i].value, b, applied->outputs.data[i].value),
                  "output %s differs", g->outputs.data[i].name);
    for (size_t v = 0; v < g->values.len; v++)
        if (g->values.data[v].writes != VALUE_NONE)
            CHECK_MSG(same_data(a, (ValueId)v, b, (ValueId)v), "%s differs",
                      g->values.data[v].name);
}

typedef struct Case {
    const Graph *g;
    const RematProblem *p;
    const RematMapping *map;
    SolutionCache *cache;
    const char *name;
} Case;

static void check_applied(Pool *pool, const Case *c, const RematSchedule *s, const RematFigures *f,
                          bool evaluate)
{
    const char *fault = "";
    Graph *copy = graph_copy(pool, c->g);
    remat_apply(copy, c->p, c->map, s, "test");
    CHECK_MSG(graph_verify(copy, &fault), "%s: %s", c->name, fault);
    MemPlan *plan = memplan_graph(pool, copy, MEMPLAN_FINAL, NULL);
    CHECK_MSG(memplan_graph_check(pool, copy, plan, &fault), "%s: %s", c->name, fault);
    CHECK_MSG(plan->lower_bound_bytes == f->peak_bytes && plan->peak_bytes == f->peak_bytes,
              "%s: plan %lld, replay %lld", c->name, (long long)plan->lower_bound_bytes,
              (long long)f->peak_bytes);
    CHECK(plan->persistent_bytes == c->p->persistent_bytes && plan->arena_bytes >= f->peak_bytes);
    RematMapping again_map;
    RematProblem *again = remat_problem_from_graph(pool, copy, NULL, &again_map);
    RematSchedule base = remat_base_schedule(pool, again);
    RematFigures g = remat_check(pool, again, &base);
    CHECK_MSG(g.ok && g.peak_bytes == f->peak_bytes, "%s: %s", c->name, g.fault);
    if (evaluate)
        check_same_numbers(pool, c->g, copy);
}

static void check_solver(Pool *parent, const Case *c, const RematSolver *solver, bool evaluate)
{
    static const int percents[] = {100, 85, 70, 55, 40, 25, 0};
    RematSchedule base = remat_base_schedule(parent, c->p);
    RematFigures keep_all = remat_check(parent, c->p, &base);
    double last_time = 0;
    for (int k = 0; k < 7; k += solver->in_portfolio ? 1 : 3) {
        Pool *pool = pool_new_child(parent);
        int64_t spare = keep_all.peak_bytes - c->p->persistent_bytes;
        RematOptions o = {.budget_bytes = c->p->persistent_bytes + spare * percents[k] / 100,
                          .max_steps = 1000000,
                          .effort = sample_effort(),
                          .context.solution_cache = c->cache};
        RematSchedule s = {0};
        RematStatus status = solver->solve(c->p, &o, pool, &s);
        RematFigures f = remat_check(pool, c->p, &s);
        int node;
        CHECK_MSG(f.ok, "%s, %s at %d%%: %s", c->name, solver->name, percents[k], f.fault);
        bool fits = f.peak_bytes <= o.budget_bytes;
        CHECK(fits ? status != REMAT_INFEASIBLE
                   : status == REMAT_INFEASIBLE || status == REMAT_LIMIT);
        CHECK(f.peak_bytes <= keep_all.peak_bytes);
        CHECK(f.peak_bytes >= remat_peak_lower_bound(c->p, pool, 0, &node));
        double bound = remat_overhead_lower_bound(c->p, o.budget_bytes, pool, 0, &node);
        CHECK_MSG(!fits || f.time - f.time_once >= bound * (1 - 1e-9),
                  "%s, %s at %d%%: overhead %g, bound %g", c->name, solver->name, percents[k],
                  f.time - f.time_once, bound);
        if (fits) {
            CHECK_MSG(f.time >= last_time, "%s, %s: time falls at %d%%", c->name, solver->name,
                      percents[k]);
            last_time = f.time;
        }
        check_applied(pool, c, &s, &f, evaluate && (k == 3 || k == 6));
        pool_free(pool);
    }
}

static void check_order(Pool *pool, const Case *c)
{
    RematSchedule base = remat_base_schedule(pool, c->p), s = reorder_nodes(pool, c->p, 0, 0);
    RematFigures before = remat_check(pool, c->p, &base), after = remat_check(pool, c->p, &s);
    int64_t spans = reorder_bound(pool, c->p, node_graph_new(pool, c->p)),
            bound = remat_peak_bound_under_time(pool, c->p, 0, 0).bytes;
    CHECK_MSG(spans <= after.peak_bytes, "%s: %lld", c->name, (long long)spans);
    CHECK_MSG(after.ok && after.peak_bytes <= before.peak_bytes && after.recomputed == 0, "%s: %s",
              c->name, after.fault);
    CHECK_MSG(bound <= after.peak_bytes, "%s: bound %lld above %lld", c->name, (long long)bound,
              (long long)after.peak_bytes);
    check_applied(pool, c, &s, &after, false);
}

static void check_step(uint64_t seed, int n_ops, bool evaluate)
{
    Pool *pool = pool_new();
    Graph *g = random_step(pool, seed, n_ops);
    RematMapping map;
    const char *fault = "";
    CHECK_MSG(graph_verify(g, &fault), "seed %llu: %s", (unsigned long long)seed, fault);
    RematProblem *p = remat_problem_from_graph(pool, g, NULL, &map);
    Case c = {g, p, &map, solution_cache_new(pool, NULL),
              pool_printf(pool, "seed %llu", (unsigned long long)seed)};
    check_order(pool, &c);
    for (const RematSolver *solver = remat_solvers; solver->name; solver++)
        if (!solver->needs_milp || p->n_nodes < 7) /* seconds each beyond */
            check_solver(pool, &c, solver, evaluate);
    pool_free(pool);
}

int main(void)
{
    uint64_t first = 1000, last = first + (uint64_t)sample_number("SCRIMP_STEPS", 8) - 1;
    printf("seeds %llu to %llu\n", (unsigned long long)first, (unsigned long long)last);
    for (uint64_t seed = first; seed <= last && !check_failures; seed++)
        check_step(seed, 3 + (int)(seed * 7 % 45), seed % 4 == 0);
    return test_result();
}
