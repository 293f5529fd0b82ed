/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where pieces lie inside the whole, budgets are spent on schedules with higher peaks: no plan for
 * another budget would fit and be faster, no plan beats the bounds, and no other solver scrimp.
 * SCRIMP_BUDGETS: how many budgets. */
#include "check.h"
#include "passes/pass.h"
#include "passes/remat/cache/solution_cache.h"
#include "tests/support/elaborate_text.h"
#include "tests/support/plan_request.h"
#include "tests/support/sample.h"

typedef struct Network {
    const char *name, *defs[5]; /* NULL at the end */
} Network;

static const Network networks[] = {{"densenet", {"depth=121", "size=64", "N=2"}}};

typedef struct Plan {
    RematReport report;
    int64_t arena_bytes;
} Plan;

/* False when the budget cannot be met. */
static bool plan_at(Pool *pool, const Elaborated *model, struct SolutionCache *cache,
                    const char *solver, const char *budget, Plan *out)
{
    PassContext ctx = {
        .pool = pool,
        .graph = graph_copy(pool, model->graph),
        .request = request_of(
            pool, model->graph,
            (PlanSettings){.budget = budget, .solver = solver, .effort = sample_effort()}),
        .solution_cache = cache};
    bool ok = passes_run(&ctx, pipeline_train, NULL, NULL);
    CHECK_MSG(ok || ctx.report.status == REMAT_INFEASIBLE, "%s", ctx.error.message);
    *out = (Plan){ctx.report, ok ? ctx.plan->arena_bytes : INT64_MAX};
    return ok;
}

static void check_plan(const char *name, const Plan *p)
{
    CHECK_MSG(p->arena_bytes <= p->report.budget_bytes, "%s: arena %lld, budget %lld", name,
              (long long)p->arena_bytes, (long long)p->report.budget_bytes);
    CHECK_MSG(p->report.overhead_lower_bound_percent <= p->report.overhead_percent + 1e-9 &&
                  p->report.lower_bound_bytes <= p->arena_bytes,
              "%s: below the bounds", name);
}

static void check_others(Pool *pool, const char *name, const Elaborated *model, const char *budget,
                         const Plan *own)
{
    static const char *const others[] = {"chen", "kusumoto_approx", "dtr", "mincut"};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        Plan p;
        bool ok = plan_at(pool, model, NULL, others[k], budget, &p);
        CHECK_MSG(!ok || own->report.overhead_percent <= p.report.overhead_percent + 1e-9,
                  "%s at %s: %g, %s %g", name, budget, own->report.overhead_percent, others[k],
                  p.report.overhead_percent);
    }
}

/* Plans by rising budget. */
static void check_spent(const char *name, const Plan *plan, int n)
{
    for (int k = 0; k < n; k++)
        for (int other = 0; other < n; other++)
            CHECK_MSG(plan[other].arena_bytes > plan[k].report.budget_bytes ||
                          plan[k].report.overhead_percent <=
                              plan[other].report.overhead_percent + 1e-9,
                      "%s: %g within %lld, where %g takes %lld", name,
                      plan[k].report.overhead_percent, (long long)plan[k].report.budget_bytes,
                      plan[other].report.overhead_percent, (long long)plan[other].arena_bytes);
}

/* At budgets from what it needs at least to keeping everything. */
static void check_network(const Network *n, int budgets)
{
    Elaborated model = elaborate_example_for(n->name, FRONTEND_TRAIN, false, n->defs);
    Pool *pool = pool_new();
    struct SolutionCache *cache = solution_cache_new(pool, NULL);
    Plan *plan = POOL_ARRAY(pool, (size_t)budgets + 1, Plan), least;
    int spent = 0;
    if (!model.graph || !plan_at(pool, &model, cache, NULL, "min", &least)) {
        CHECK_MSG(false, "%s has no plan", n->name);
        return;
    }
    int64_t low = least.arena_bytes, high = least.report.keep_all_peak_bytes;
    for (int k = 0; k <= budgets; k++) {
        Pool *once = pool_new_child(pool);
        const char *budget =
            pool_printf(once, "%lld", (long long)(low + (high - low) * k / budgets));
        bool ok = plan_at(once, &model, cache, NULL, budget, &plan[k]);
        CHECK_MSG(ok, "%s: no plan in %s, where min has one", n->name, budget);
        if (ok)
            check_plan(n->name, &plan[k]);
        if (ok && k % 16 == 4)
            check_others(once, n->name, &model, budget, &plan[k]);
        spent += plan[k].report.peak_bytes > plan[k].report.budget_bytes;
        pool_free(once);
    }
    check_spent(n->name, plan, budgets + 1);
    printf("%s: %d of %d schedules have peaks above the budget\n", n->name, spent, budgets + 1);
    CHECK_MSG(spent > 0, "%s", n->name);
    pool_free(pool);
    elaborated_free(&model);
}

int main(void)
{
    for (size_t k = 0; k < sizeof networks / sizeof *networks; k++)
        check_network(&networks[k], sample_number("SCRIMP_BUDGETS", 5));
    return test_result();
}
