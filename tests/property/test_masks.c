/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Bits and indices instead of whole tensors leave every bit of a training step as it is: random
 * models with every mask there can be, with and without recomputation, also when there are NaN.
 * SCRIMP_MODELS sets how many models of each family (default: the one that other tests take, too).
 */
#include "check.h"
#include "tests/support/fixed_models.h"
#include "tests/support/random_model.h"
#include "tests/support/run/model_run.h"
#include "tests/support/sample.h"
#include "tests/support/solutions.h"

#include "passes/mask_rewrite.h"
#include "tests/support/plan_request.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 3 };

static const char BEFORE[] = "fold,cse,dce,layout,fold,autodiff,fold,cse,dce,fuse,order";
static int n_masked;

/* Like model_build, with masks wherever one is possible. */
static bool build_masked(Pool *pool, const char *text, BuildOptions o, Built *out)
{
    const char *error = NULL, *build = getenv("SCRIMP_BUILD");
    o.pipeline = BEFORE;
    if (!model_plan(pool, text, &o, out))
        return false;
    MaskTensors all = mask_find(pool, out->graph);
    n_masked += (int)all.len;
    mask_apply(out->graph, &all);
    PassContext ctx = {.pool = pool, .graph = out->graph, .solution_cache = solutions_kept(pool)};
    ctx.request =
        request_of(pool, out->graph, (PlanSettings){.budget = o.budget, .effort = sample_effort()});
    if (!passes_run(&ctx, "remat,plan", NULL, NULL))
        return false;
    out->plan = ctx.plan;
    CodegenOptions options = {.march = o.march,
                              .cache_dir =
                                  pool_printf(pool, "%s/test-cache", build ? build : "/tmp"),
                              .jobs = 2};
    out->step = codegen_compile(pool, out->graph, out->plan, &options, &error);
    CHECK_MSG(out->step, "%s\n%s", error, text);
    return out->step != NULL;
}

/* NaN in the first weight: what reads it is NaN, the rest is not. */
static void poke_nan(Running *r)
{
    const Graph *g = r->built->graph;
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (n->op == OP_param) {
            *(float *)run_at(r, n->out[0]) = NAN;
            return;
        }
    }
}

static void compare(const Built *whole, const Built *masked, bool nan, const char *text)
{
    Running a, b;
    const char *where = NULL;
    if (!run_open(&a, whole, 1) || !run_open(&b, masked, 2))
        return;
    arena_poison(&b.arena, 0, b.arena.bytes);
    run_initialize(&a, 1);
    run_initialize(&b, 1);
    if (nan) {
        poke_nan(&a);
        poke_nan(&b);
    }
    for (int64_t step = 0; step < STEPS && !where; step++) {
        run_step(&a, 5, step);
        run_step(&b, 5, step);
        where = run_difference(&a, &b);
        CHECK_MSG(!where, "step %lld: masks change %s%s\n%s", (long long)step + 1, where,
                  nan ? " (NaN)" : "", text);
    }
    run_close(&a);
    run_close(&b);
}

static void check_text(const char *text)
{
    if (!strstr(text, "relu()"))
        return;
    static const char *const budgets[] = {"", "60%"};
    Pool *pool = pool_new();
    Built whole, masked;
    BuildOptions o = {.pipeline = "fold,cse,dce,layout,fold,autodiff,fold,cse,dce,fuse,order,plan",
                      .checksums = true};
    if (model_build(pool, text, &o, &whole)) {
        for (size_t b = 0; b < sizeof budgets / sizeof *budgets; b++) {
            o.budget = budgets[b];
            if (!build_masked(pool, text, o, &masked))
                continue;
            compare(&whole, &masked, false, text);
            compare(&whole, &masked, true, text);
            codegen_unload(masked.step);
        }
        codegen_unload(whole.step);
    }
    pool_free(pool);
}

#define TRAIN                                                                                      \
    "train {\n  batch = synthetic(x = f32[2, 3, 17, 15], label = i32[2])\n"                        \
    "  loss = cross_entropy(m(batch.x), batch.label)\n"                                            \
    "  optim = sgd(lr = 0.1, momentum = 0.9)\n  steps = 4\n}\n"

/* Gradients in the epilogue of a convolution and of a matrix product, of images with odd sides;
 * overlapping windows with padding; branches. */
static const char *const models[] = {
    "model m(x: f32[2, 3, 17, 15]) {\n"
    "  x = x |> c1: conv(7, 3, pad = 1) |> relu() |> maxpool(3, stride = 2, pad = 1)\n"
    "  x = x |> c2: conv(9, 3, pad = 1) |> relu() |> c3: conv(16, 1) |> relu() |> maxpool(2)\n"
    "  return x |> flatten() |> f1: linear(33) |> relu() |> f2: linear(10)\n}\n" TRAIN,
    "model m(x: f32[2, 3, 17, 15]) {\n"
    "  a = x |> c1: conv(5, 3, pad = 1) |> b1: bn() |> relu()\n"
    "  b = x |> c2: conv(6, 1) |> relu()\n"
    "  c = x |> maxpool(3, stride = 1, pad = 1) |> c3: conv(4, 1) |> relu()\n"
    "  y = concat([a, b, c], axis = 1) |> maxpool(2, ceil = true)\n"
    "  z = y |> c4: conv(15, 3, pad = 1) |> b4: bn()\n"
    "  return relu(y + z) |> global_avgpool() |> flatten() |> f: linear(10)\n}\n" TRAIN};

int main(void)
{
    int n = sample_number("SCRIMP_MODELS", 0);
    Pool *pool = pool_new();
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        check_text(models[i]);
    for (int i = 0; i < FIXED_MODELS; i++)
        check_text(fixed_models[i].text);
    for (int family = 0; n == 0 && family < MODEL_FAMILIES; family++)
        check_text(shared_random_model(pool, (ModelFamily)family));
    for (uint64_t seed = 200; seed < 200 + (uint64_t)n && check_failures < 5; seed++)
        for (int family = 0; family < MODEL_FAMILIES; family++)
            check_text(random_model(pool, seed, (ModelFamily)family, 6, (ModelLimits){0}));
    pool_free(pool);
    printf("%d models of each family from 200; %d tensors with masks\n", n, n_masked);
    CHECK(n_masked > 10);
    return test_result();
}
