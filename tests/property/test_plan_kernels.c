/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A plan chooses what runs again, in which order and where, never how: the step runs the same
 * kernels under every budget, but for pieces that lie elsewhere (views) and the choice between the
 * step with masks and the one without, each of which is looked at alone here.  Same bits rest on
 * this, and so do measured costs, which are taken under one plan of each and used for others
 * (frontend/driver/cli_costs.c).  SCRIMP_MODELS: how many random models;
 * SCRIMP_ALL=1: all networks too. */
#include "check.h"
#include "codegen/build/codegen.h"
#include "ir/support/map.h"
#include "passes/pass.h"
#include "tests/support/csv.h"
#include "tests/support/elaborate_text.h"
#include "tests/support/fixed_models.h"
#include "tests/support/plan_request.h"
#include "tests/support/random_model.h"
#include "tests/support/sample.h"
#include "tests/support/solutions.h"

#include <stdio.h>
#include <string.h>

/* What measured costs are known by. */
static Map kernels_of(Pool *pool, const Graph *g)
{
    Map set = map_new(pool);
    const CodegenOptions host = {0};
    CallList l = {0};
    const char *error;
    CHECK(codegen_list_calls(pool, g, &host, &l, &error));
    for (int i = 0; i < l.n; i++)
        map_set(&set, pool_printf(pool, "%s:%lld", l.key[i], (long long)l.calls[i].n_tasks),
                (uint64_t)i);
    return set;
}

static void check_same(const Map *plain, const Map *planned, const char *name, const char *budget)
{
    for (size_t i = 0; i < plain->len; i++)
        CHECK_MSG(map_find(planned, plain->entries[i].key), "%s at %s: a kernel is gone", name,
                  budget);
    CHECK_MSG(planned->len == plain->len, "%s at %s: %zu kernels, not %zu", name, budget,
              planned->len, plain->len);
}

/* How many operations the plan runs again; 0 also when the budget is too small. */
static int check_plan(const Graph *g, const Map *plain, const char *budget, const char *solver,
                      const char *name)
{
    Pool *pool = pool_new();
    PassContext ctx = {
        .graph = graph_copy(pool, g), .pool = pool, .solution_cache = solutions_kept(pool)};
    ctx.request = request_of(
        pool, g, (PlanSettings){.budget = budget, .solver = solver, .effort = sample_effort()});
    bool ok = passes_run(&ctx, "remat,plan", NULL, NULL);
    CHECK_MSG(ok || ctx.report.status == REMAT_INFEASIBLE, "%s: %s", name, ctx.error.message);
    if (ok) {
        Map planned = kernels_of(pool, ctx.graph);
        check_same(plain, &planned, name, budget);
    }
    int recomputed = ok ? ctx.report.recomputed_ops : 0;
    pool_free(pool);
    return recomputed;
}

static int check_model(const Elaborated *r, const char *name)
{
    PassContext ctx = {.graph = r->graph, .pool = r->pool};
    bool ok = r->graph && passes_run(&ctx, pipeline_before(r->pool, "remat"), NULL, NULL);
    CHECK_MSG(ok, "%s: %s", name, ctx.error.message ? ctx.error.message : r->errors);
    if (!ok)
        return 0;
    Map plain = kernels_of(r->pool, ctx.graph);
    return check_plan(ctx.graph, &plain, "min", NULL, name) +
           check_plan(ctx.graph, &plain, "50%", NULL, name) +
           check_plan(ctx.graph, &plain, "70%", "chen", name);
}

static void check_texts(void)
{
    int recomputed = 0;
    for (int k = 0; k < (int)FIXED_MODELS; k++) {
        Elaborated r = elaborate_text(fixed_models[k].text, FRONTEND_TRAIN);
        recomputed += check_model(&r, fixed_models[k].name);
        elaborated_free(&r);
    }
    int n = sample_number("SCRIMP_MODELS", 4);
    printf("random models, seeds 1 to %d\n", n);
    for (uint64_t seed = 1; seed <= (uint64_t)n; seed++) {
        Pool *pool = pool_new();
        const char *text =
            random_model(pool, seed, (ModelFamily)(seed % MODEL_FAMILIES), 6, (ModelLimits){0});
        Elaborated r = elaborate_text(text, FRONTEND_TRAIN);
        recomputed += check_model(&r, pool_printf(pool, "seed %d", (int)seed));
        elaborated_free(&r);
        pool_free(pool);
    }
    printf("%d operations recomputed\n", recomputed);
    CHECK(recomputed > 60);
}

static void check_zoo(void)
{
    Pool *pool = pool_new();
    Csv zoo = csv_read(pool, "zoo.csv");
    for (int i = 0; i < zoo.n; i++) {
        const char *defs[8] = {"N=4"}, *name = csv_get(&zoo, &zoo.row[i], "network");
        char *rest = pool_strdup(pool, csv_get(&zoo, &zoo.row[i], "options")), *save = NULL;
        for (int n = 1; n < 7 && (defs[n] = strtok_r(n == 1 ? rest : NULL, " ", &save)); n++) {
        }
        Elaborated r = elaborate_example(csv_get(&zoo, &zoo.row[i], "file"), FRONTEND_TRAIN, defs);
        int recomputed = check_model(&r, name);
        printf("%s: %d operations recomputed\n", name, recomputed);
        CHECK_MSG(recomputed > 0, "%s", name);
        elaborated_free(&r);
    }
    pool_free(pool);
}

int main(void)
{
    check_texts();
    if (sample_all())
        check_zoo();
    return test_result();
}
