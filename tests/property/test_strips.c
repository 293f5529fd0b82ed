/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Kernels in turns, strip by strip, change no bit: models with chains of products, convolutions,
 * element-wise kernels and statistics, and some whose kernels must not be in one, for numbers of
 * threads whose tasks begin and end within strips, compared with the same kernels one after
 * another, with and without recomputation. */
#include "check.h"
#include "tests/support/run/model_run.h"

#include <stdlib.h>
#include <string.h>

/* Of a core, so that small tensors are large. */
enum { CACHE = 400 * 1024, STEPS = 3 };
static const uint64_t data_seed = 5;
static const int threads[] = {1, 2, 3, 5, 8};
enum { N_THREADS = sizeof threads / sizeof *threads };

#define TRAIN(shape, rest)                                                                         \
    "train {\n"                                                                                    \
    "  batch = synthetic(x = f32" shape ", label = i32[5])\n"                                      \
    "  loss = cross_entropy(m(batch.x), batch.label)\n"                                            \
    "  optim = sgd(lr = 0.05, momentum = 0.9)\n"                                                   \
    "  steps = 3\n" rest "}\n"

static const struct {
    const char *text, *wanted[5]; /* chains, by parts of their labels */
} models[] = {
    {"model m(x: f32[5, 3, 64, 64]) {\n"
     "  x = x |> c1: conv(24, 3, pad = 1, bias = false) |> b1: bn() |> relu()\n"
     "  x = x |> c2: conv(48, 1, bias = false) |> b2: bn() |> relu()\n"
     "  x = x |> c3: conv(48, 3, pad = 1, groups = 48, bias = false) |> b3: bn() |> relu()\n"
     "  x = x |> c4: conv(32, 1, bias = false) |> b4: bn() |> relu()\n"
     "  x = x |> c5: conv(32, 3, pad = 1, stride = 2, bias = false) |> b5: bn() |> relu()\n"
     "  return x |> global_avgpool() |> flatten() |> fc: linear(10)\n"
     "}\n" TRAIN("[5, 3, 64, 64]", ""),
     {"relu > conv 1x1", "relu > conv 3x3/1 5x64x64x48>48 > bn_stats",
      "conv 1x1 20480x32x48 > bn_stats"}},
    {"model m(x: f32[5, 16, 66, 70]) {\n"
     "  x = x |> c1: conv(40, 3, pad = 1, bias = false) |> b1: bn() |> relu()\n"
     "  y = x |> c2: conv(40, 3, pad = 2, dilation = 2, bias = false) |> b2: bn() |> relu()\n"
     "  y = y |> c3: conv(40, 3, pad = 1, bias = false) |> b3: bn()\n"
     "  x = relu(x + y) |> c4: conv(40, 5, pad = 2, stride = 2, groups = 40, bias = false)\n"
     "  x = x |> b4: bn() |> relu()\n"
     "  return x |> global_avgpool() |> flatten() |> fc: linear(10)\n"
     "}\n" TRAIN("[5, 16, 66, 70]", "  precision = bf16\n"),
     {"> bn_stats"}},
    {"model m(x: f32[5, 3, 96, 96]) {\n"
     "  x = x |> c1: conv(64, 3, pad = 1, bias = false) |> b1: bn() |> relu()\n"
     "  x = x |> c2: conv(64, 1, stride = 2, bias = false) |> b2: bn() |> relu()\n"
     "  x = x |> c3: conv(64, 1, bias = false) |> b3: bn() |> relu()\n"
     "  return x |> global_avgpool() |> flatten() |> fc: linear(10)\n"
     "}\n" TRAIN("[5, 3, 96, 96]", "  precision = bf16\n"),
     {"> bn_stats"}},
    {"model m(x: f32[5, 3, 96, 96]) {\n"
     "  x = x |> c1: conv(16, 3, pad = 1, bias = false) |> b1: bn() |> relu()\n"
     "  x = x |> c2: conv(16, 3, pad = 1, bias = false) |> b2: bn() |> relu()\n"
     "  x = x |> c3: conv(32, 5, pad = 1, stride = 3, bias = false) |> b3: bn() |> relu()\n"
     "  return x |> global_avgpool() |> flatten() |> fc: linear(10)\n"
     "}\n" TRAIN("[5, 3, 96, 96]", ""),
     {"relu > conv 3x3/1 5x96x96x16>16"}},
    {"model m(x: f32[5, 700, 64]) {\n"
     "  x = x |> l1: linear(96) |> n1: layernorm() |> gelu()\n"
     "  x = x |> l2: linear(96) |> n2: layernorm() |> gelu()\n"
     "  x = dropout(x, 0.1) |> l3: linear(96) |> n3: layernorm()\n"
     "  return mean(x, 1) |> fc: linear(10)\n"
     "}\n" TRAIN("[5, 700, 64]", ""),
     {"> layernorm_grad_sums"}},
};
enum { N_MODELS = sizeof models / sizeof *models };

static bool build(Pool *pool, const char *text, const char *budget, int64_t cache, Built *out)
{
    /* With normalized images as tensors: chains begin with them. */
    BuildOptions o = {.budget = budget, .strip_cache = cache, .no_norms = true};
    return model_build(pool, text, &o, out);
}

static int count_chains(const Built *b, const char *what)
{
    int n = 0;
    for (int i = 0; i < b->step->n_calls; i++) {
        const char *label = b->step->calls[i].label;
        n += strstr(label, " > ") && strstr(label, what);
    }
    return n;
}

static void check_threads(const Built *plain, const Built *chained, int n, const char *text)
{
    Running a, b;
    const char *where = NULL;
    if (!run_open(&a, plain, 1) || !run_open(&b, chained, n))
        return;
    arena_poison(&b.arena, 0, b.arena.bytes);
    run_initialize(&a, 1);
    run_initialize(&b, 1);
    for (int64_t step = 0; step < STEPS && !where; step++) {
        run_step(&a, data_seed, step);
        run_step(&b, data_seed, step);
        where = run_difference(&a, &b);
        CHECK_MSG(!where, "%d threads: step %lld changes %s\n%s", n, (long long)step + 1, where,
                  text);
        int64_t persistent = chained->plan->persistent_bytes;
        arena_poison(&b.arena, persistent, b.arena.bytes - persistent);
    }
    run_close(&a);
    run_close(&b);
}

static void check_budget(int model, const char *budget)
{
    Pool *pool = pool_new();
    Built plain, chained;
    const char *text = models[model].text;
    if (build(pool, text, budget, STRIPS_NONE, &plain) &&
        build(pool, text, budget, CACHE, &chained)) {
        CHECK(count_chains(&plain, "") == 0 && plain.step->n_calls == chained.step->n_calls);
        for (int i = 0; !*budget && i < 5 && models[model].wanted[i]; i++)
            CHECK_MSG(count_chains(&chained, models[model].wanted[i]) > 0, "no chain has %s\n%s",
                      models[model].wanted[i], text);
        for (int i = 0; i < N_THREADS; i++)
            check_threads(&plain, &chained, threads[i], text);
        codegen_unload(plain.step);
        codegen_unload(chained.step);
    }
    pool_free(pool);
}

int main(void)
{
    for (int i = 0; i < N_MODELS; i++) {
        check_budget(i, "");
        check_budget(i, "min");
    }
    return test_result();
}
