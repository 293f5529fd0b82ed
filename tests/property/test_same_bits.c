/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Promises 5, 6, 7, 9 and 10 on random models with dropout and batch statistics: many steps under
 * every solver and budget leave the bits of keeping everything, with all dead memory poisoned
 * before each step; the arena's high water is what the plan says; another build of the same text is
 * the same.  SCRIMP_MODELS sets how many models of each family (default: the one that other tests
 * take, too), SCRIMP_STEPS how many steps; SCRIMP_ALL=1: every solver at every budget. */
#include "check.h"
#include "tests/support/fixed_models.h"
#include "tests/support/random_model.h"
#include "tests/support/run/model_run.h"
#include "tests/support/sample.h"

#include "ir/print.h"
#include "ir/strided_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const solvers[] = {NULL, "chen", "kusumoto_approx"};
static const char *const budgets[] = {"70%", "min"};
enum { N_SOLVERS = sizeof solvers / sizeof *solvers, N_BUDGETS = sizeof budgets / sizeof *budgets };

/* By default each solver of a paper is asked for one of the budgets, by turns. */
static int n_texts;

static int64_t n_steps;
static const uint64_t data_seed = 5;

/* Everything behind the persistent tensors is dead between two steps. */
static void poison_dead(Running *r)
{
    int64_t persistent = r->built->plan->persistent_bytes;
    arena_poison(&r->arena, persistent, r->arena.bytes - persistent);
}

/* Where the last tensor (without workspaces, which are upper bounds) ends. */
static int64_t planned_end(const Built *b)
{
    int64_t end = 0;
    for (size_t v = 0; v < b->graph->values.len; v++) {
        int64_t at = b->plan->offset[v] + type_bytes(value_type(b->graph, (ValueId)v));
        if (b->plan->offset[v] >= 0 && at > end)
            end = at;
    }
    return end;
}

static bool has_pieces(const Graph *g)
{
    for (size_t v = 0; v < g->values.len; v++)
        if (!value_is_dense(g, (ValueId)v))
            return true;
    return false;
}

/* What is replayed copies pieces of tensors that the plan lets lie where the whole lies. */
static void check_peak(const Built *b, const char *text)
{
    int64_t peak = b->plan->peak_bytes, replayed = b->report.peak_bytes;
    CHECK_MSG(peak == b->plan->lower_bound_bytes &&
                  (peak == replayed || (peak < replayed && has_pieces(b->graph))),
              "peak %lld, bound %lld, replayed %lld\n%s", (long long)peak,
              (long long)b->plan->lower_bound_bytes, (long long)replayed, text);
}

static void check_high_water(const Running *r, const char *text)
{
    const MemPlan *plan = r->built->plan;
    int64_t high = arena_high_water(&r->arena), end = planned_end(r->built);
    CHECK_MSG(high <= plan->arena_bytes && arena_tail_clean(&r->arena),
              "wrote behind the arena's end\n%s", text);
    CHECK_MSG(high >= end - 3 && plan->arena_bytes >= end,
              "high water %lld, last tensor ends at %lld, arena %lld\n%s", (long long)high,
              (long long)end, (long long)plan->arena_bytes, text);
    check_peak(r->built, text);
}

/* Trains `keep` undisturbed and `other` in poisoned memory. */
static void expect_same_bits(const Built *keep, const Built *other, const char *what,
                             const char *text)
{
    Running a, b;
    const char *where = NULL;
    if (!run_open(&a, keep, 1) || !run_open(&b, other, 2))
        return;
    arena_poison(&b.arena, 0, b.arena.bytes);
    run_initialize(&a, 1);
    run_initialize(&b, 1);
    for (int64_t step = 0; step < n_steps && !where; step++) {
        run_step(&a, data_seed, step);
        run_step(&b, data_seed, step);
        where = run_difference(&a, &b);
        CHECK_MSG(!where, "%s: step %lld changes %s\n%s", what, (long long)step + 1, where, text);
        check_high_water(&b, text);
        poison_dead(&b);
    }
    CHECK_MSG(where || isfinite(run_output(&a, "loss")), "the loss is no number\n%s", text);
    run_close(&a);
    run_close(&b);
}

static void check_budget(const Built *keep, const char *solver, const char *budget,
                         const char *text)
{
    Pool *pool = pool_new();
    BuildOptions o = {.budget = budget, .solver = solver, .checksums = true};
    Built b;
    if (model_build(pool, text, &o, &b)) {
        const char *what = pool_printf(pool, "%s at %s", solver ? solver : "best", budget);
        CHECK(b.plan->arena_bytes - b.plan->appended_bytes <= b.report.budget_bytes);
        expect_same_bits(keep, &b, what, text);
        codegen_unload(b.step);
    }
    pool_free(pool);
}

/* Compiling is a function of the text: the same IR, and the same step from the cache. */
static void check_repeatable(const Built *first, const char *text)
{
    Pool *pool = pool_new();
    BuildOptions o = {.budget = "", .solver = "none", .checksums = true};
    Built b;
    if (model_build(pool, text, &o, &b)) {
        StrBuf x = strbuf_new(pool), y = strbuf_new(pool);
        graph_print(first->graph, (PrintOptions){0}, &x);
        graph_print(b.graph, (PrintOptions){0}, &y);
        CHECK_MSG(strcmp(x.text, y.text) == 0, "two compilations differ\n%s", text);
        CHECK(strcmp(first->step->key, b.step->key) == 0 && b.step->n_compiled == 0);
        codegen_unload(b.step);
    }
    pool_free(pool);
}

static void check_text(const char *text)
{
    Pool *pool = pool_new();
    BuildOptions o = {.budget = "", .solver = "none", .checksums = true};
    Built keep;
    if (model_build(pool, text, &o, &keep)) {
        expect_same_bits(&keep, &keep, "poisoned", text);
        check_repeatable(&keep, text);
        for (int s = 0; s < N_SOLVERS; s++)
            for (int b = 0; b < N_BUDGETS; b++)
                if (sample_all() || s == 0 || (s + b + n_texts) % 2)
                    check_budget(&keep, solvers[s], budgets[b], text);
        n_texts++;
        codegen_unload(keep.step);
    }
    pool_free(pool);
}

static void check_models(int models)
{
    Pool *pool = pool_new();
    for (int family = 0; models == 0 && family < MODEL_FAMILIES; family++)
        check_text(shared_random_model(pool, (ModelFamily)family));
    for (uint64_t seed = 100; seed < 100 + (uint64_t)models && check_failures < 5; seed++)
        for (int family = 0; family < MODEL_FAMILIES; family++)
            check_text(random_model(pool, seed, (ModelFamily)family, 6, (ModelLimits){0}));
    pool_free(pool);
}

/* --- batch statistics --- */

static const char statistics_model[] =
    "model m(x: f32[4, 3, 8, 8]) {\n"
    "  x = x |> c1: conv(8, 3, pad = 1, bias = false) |> b1: bn() |> relu()\n"
    "  x = x |> c2: conv(8, 3, pad = 1, bias = false) |> b2: bn() |> relu() |> dropout(0.5)\n"
    "  return x |> flatten() |> fc: linear(10)\n"
    "}\n"
    "train {\n"
    "  batch = synthetic(x = f32[4, 3, 8, 8], label = i32[4])\n"
    "  loss = cross_entropy(m(batch.x), batch.label)\n"
    "  optim = sgd(lr = 0.05, momentum = 0.9)\n"
    "  steps = 10\n"
    "}\n";

/* The data do not change and the learning rate is zero: after n updates of momentum 0.1 a running
 * mean that started at 0 is (1 - 0.9^n) of the batch's, whatever was recomputed. */
static void check_statistics(void)
{
    Pool *pool = pool_new();
    BuildOptions o = {.budget = "min"};
    Built b;
    Running r;
    if (model_build(pool, statistics_model, &o, &b) && run_open(&r, &b, 2)) {
        CHECK(b.report.recomputed_ops > 0);
        run_initialize(&r, 1);
        ValueId mean = graph_find(b.graph, "$b1.running_mean");
        CHECK(mean != VALUE_NONE);
        double one = 0;
        for (int n = 1; n <= 20; n++) {
            run_fill(&r, data_seed, 0);
            for (size_t i = 0; i < b.graph->order.len; i++) {
                const Node *node = graph_node(b.graph, b.graph->order.data[i]);
                if (node->op == OP_input && strcmp(node_string(node, ATTR_role, ""), "lr") == 0)
                    memset(run_at(&r, node->out[0]), 0, sizeof(float));
            }
            b.step->run(&r.context);
            double got = (double)*(float *)run_at(&r, mean);
            one = n == 1 ? got / 0.1 : one;
            double want = one * (1 - pow(0.9, n));
            CHECK_MSG(fabs(got - want) <= 1e-5 * fabs(one) && got != 0,
                      "after %d updates the running mean is %g, not %g", n, got, want);
        }
        run_close(&r);
        codegen_unload(b.step);
    }
    pool_free(pool);
}

int main(void)
{
    n_steps = sample_number("SCRIMP_STEPS", 30);
    check_statistics();
    check_models(sample_number("SCRIMP_MODELS", 0));
    for (int i = 0; i < FIXED_MODELS; i++)
        check_text(fixed_models[i].text);
    return test_result();
}
