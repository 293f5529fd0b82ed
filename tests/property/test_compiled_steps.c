/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Promise 4: random trainable models, and a few fixed ones, their whole training step compiled,
 * against ir/eval's doubles of the step that autodiff alone makes (no layout, fusion, order or
 * plan).  Every step starts from the compiled run's weights, so that only one step's rounding is
 * compared.  Metamorphic variants: examples in another order, fusion off, other vector widths; the
 * same width at other thread counts gives the same bits.  SCRIMP_MODELS sets how many models of
 * each family (default 1); SCRIMP_ALL=1: every variant of the fixed ones. */
#include "check.h"
#include "tests/support/fixed_models.h"
#include "tests/support/random_model.h"
#include "tests/support/run/step_compare.h"
#include "tests/support/sample.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS = 3 };

static int n_models(void)
{
    const char *text = getenv("SCRIMP_MODELS");
    return text ? atoi(text) : 1;
}

/* The first difference over some steps of made-up data; NULL when all agree. */
static const char *follow(const Built *built, const Graph *plain, uint64_t seed, bool round_f32,
                          bool shuffled, double tolerance)
{
    Running r;
    const char *fault = NULL;
    if (!run_open(&r, built, 2))
        return "no memory";
    run_initialize(&r, seed);
    for (int64_t step = 0; step < STEPS && !fault; step++) {
        EvalState *s = eval_new(built->pool, plain);
        r.shuffled = false;
        eval_from_run(s, &r, seed, step);
        r.shuffled = shuffled;
        run_step(&r, seed, step);
        eval_run(s, round_f32);
        fault = compare_numbers(&r, s, tolerance);
        eval_commit(s);
        if (!fault)
            fault = compare_state(&r, s, lr_at(&plain->train.rule.lr, step, 10, 5), tolerance);
        if (fault)
            fault = pool_printf(built->pool, "step %lld: %s", (long long)step, fault);
    }
    run_close(&r);
    return fault;
}

/* A relu at zero or two equal maxima may fall between two roundings: a fault shows on other data
 * too. */
static void expect_follows(const char *what, const char *text, const Built *built,
                           const Graph *plain, bool round_f32, bool shuffled)
{
    const double tolerance = 5e-5;
    const char *fault = follow(built, plain, 11, round_f32, shuffled, tolerance);
    const char *again = fault ? follow(built, plain, 12, round_f32, shuffled, tolerance) : NULL;
    CHECK_MSG(!again, "%s%s: %s\nand: %s\n%s", what, round_f32 ? " (rounded)" : "", fault, again,
              text);
}

/* --- variants --- */

/* A mask is drawn by the place of an element in memory, which the layout of images decides. */
static const Graph *plain_step(Pool *pool, const char *text)
{
    Built built;
    BuildOptions o = {.pipeline = strstr(text, "dropout(") ? "layout,autodiff" : "autodiff"};
    return model_plan(pool, text, &o, &built) ? built.graph : NULL;
}

static void expect_same_bits_for_threads(const char *text, const Built *built)
{
    Running one, other;
    for (int n = 2; n <= 5; n += 3) {
        if (!run_open(&one, built, 1) || !run_open(&other, built, n))
            return;
        run_initialize(&one, 3);
        run_initialize(&other, 3);
        for (int64_t step = 0; step < STEPS; step++) {
            run_step(&one, 3, step);
            run_step(&other, 3, step);
        }
        const char *where = run_difference(&one, &other);
        CHECK_MSG(!where, "%d threads change %s\n%s", n, where, text);
        run_close(&one);
        run_close(&other);
    }
}

static void check_variant(const char *what, const char *text, const BuildOptions *o,
                          const Graph *plain, bool shuffled)
{
    Pool *pool = pool_new();
    Built built;
    if (model_build(pool, text, o, &built)) {
        expect_follows(what, text, &built, plain, false, shuffled);
        codegen_unload(built.step);
    }
    pool_free(pool);
}

static const char *const no_fusion = "fold,cse,dce,layout,fold,autodiff,fold,cse,dce,order,plan";

static void check_widths(const char *text, const Graph *plain)
{
    for (const char *const *name = target_names(); *name; name++) {
        BuildOptions o = {.march = *name};
        if (target_runs_here(target_find(*name)) && strcmp(*name, target_find(NULL)->name) != 0)
            check_variant(*name, text, &o, plain, false);
    }
}

static void check_model(uint64_t seed, ModelFamily family)
{
    Pool *pool = pool_new();
    /* Every third model may be shuffled: masks and micro-batches depend on the place in the batch.
     */
    bool shuffle = seed % 3 == 0;
    ModelLimits limits = {.no_dropout = shuffle, .no_accumulate = shuffle};
    const char *text = random_model(pool, seed, family, 2 + (int)(seed % 5), limits);
    const Graph *plain = plain_step(pool, text);
    BuildOptions o = {0};
    Built built;
    if (plain && model_build(pool, text, &o, &built)) {
        expect_follows("compiled", text, &built, plain, false, false);
        expect_follows("compiled", text, &built, plain, true, false);
        if (shuffle)
            expect_follows("shuffled", text, &built, plain, false, true);
        expect_same_bits_for_threads(text, &built);
        codegen_unload(built.step);
        if (seed % 3 == 1)
            check_variant("no fusion", text, &(BuildOptions){.pipeline = no_fusion}, plain, false);
        if (seed % 3 == 2)
            check_widths(text, plain);
    }
    pool_free(pool);
}

/* Unless all is asked for, each has one of the variants. */
static void check_fixed(const FixedModel *m, bool unfused, bool widths)
{
    Pool *pool = pool_new();
    const Graph *plain = plain_step(pool, m->text);
    Built built;
    if (plain && model_build(pool, m->text, &(BuildOptions){0}, &built)) {
        expect_follows(m->name, m->text, &built, plain, false, false);
        expect_same_bits_for_threads(m->text, &built);
        codegen_unload(built.step);
        if (unfused)
            check_variant("no fusion", m->text, &(BuildOptions){.pipeline = no_fusion}, plain,
                          false);
        if (widths)
            check_widths(m->text, plain);
    }
    pool_free(pool);
}

int main(void)
{
    const char *first = getenv("SCRIMP_FIRST_MODEL");
    uint64_t from = first ? strtoull(first, NULL, 10) : 0;
    for (uint64_t seed = from; seed < from + (uint64_t)n_models() && check_failures < 5; seed++)
        for (int family = 0; family < MODEL_FAMILIES; family++)
            check_model(seed, (ModelFamily)family);
    for (int i = 0; i < FIXED_MODELS; i++)
        check_fixed(&fixed_models[i], sample_all() || i % 2 == 0, sample_all() || i % 2 == 1);
    printf("%d models of each family from %llu\n", n_models(), (unsigned long long)from);
    return test_result();
}
