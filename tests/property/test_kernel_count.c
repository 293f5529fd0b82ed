/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where a piece lies, and numbers such as constants and the keys of dropout, are arguments of a
 * kernel: a loop that is unrolled over more steps makes more calls, not more kernels.  Only the
 * groups that long sums are fused in may differ, which are as many for every long loop.  So are the
 * sizes of element-wise programs, of packed weights and of sums whose parts are joined. */
#include "check.h"
#include "codegen/build/codegen.h"
#include "ir/support/map.h"
#include "passes/pass.h"
#include "tests/support/elaborate_text.h"

#include <string.h>

static const struct Scan {
    const char *name, *text;
} scans[] = {
    {"state space",
     "block Scan(x: [_, B, C]) {\n"
     "  param a: f32[24] = uniform(-1, 1)\n"
     "  param b: f32[24, C] = normal(0.1)\n"
     "  param c: f32[C, 24] = normal(0.1)\n"
     "  h = zeros([B, 24]); ys = []\n"
     "  for t in 0..T {\n"
     "    h = sigmoid(a) * h + affine(x[t], b)\n"
     "    ys = ys ++ [affine(h, c)]\n"
     "  }\n"
     "  return stack(ys, axis = 0)\n"
     "}\n"
     "model m(x: f32[T, 4, 16]) { return x |> inp: linear(16) |> scan: Scan() }\n"
     "train { batch = synthetic(x = f32[T, 4, 16], y = f32[T, 4, 16])\n"
     "  loss = mse(m(batch.x), batch.y)\n  optim = adam(lr = 1e-3)\n  steps = 1 }\n"},
    {"gated recurrent units, dropout",
     "block Cell(x: [B, _], h: [B, S]) {\n"
     "  r, z = split(sigmoid((x |> ix: linear(2 * S)) + (h |> hx: linear(2 * S))), 2, axis = -1)\n"
     "  n = tanh((x |> inn: linear(S)) + r * (h |> hn: linear(S)))\n"
     "  return (1 - z) * n + z * h\n"
     "}\n"
     "model m(x: f32[4, T, 16]) {\n"
     "  h = zeros([4, 24]); ys = []; x = x |> inp: linear(16)\n"
     "  for t in 0..T { h = shared cell: Cell(x[.., t], h); ys = ys ++ [dropout(h, 0.2)] }\n"
     "  return stack(ys, axis = 1) |> out: linear(16)\n"
     "}\n"
     "train { batch = synthetic(x = f32[4, T, 16], y = f32[4, T, 16])\n"
     "  loss = mse(m(batch.x), batch.y)\n  optim = adam(lr = 1e-3)\n  steps = 1 }\n"},
    {"a number for each step",
     "model m(x: f32[T, 4, 16]) {\n"
     "  x = x |> inp: linear(16); y = zeros([4, 16]); ys = []\n"
     "  for t in 0..T {\n"
     "    y = tanh(y * (0.5 + 0.3 / (t + 1)) + x[t] * (t + 1.5)) + full([4, 16], 0.01 * t)\n"
     "    ys = ys ++ [((y |> shared w: linear(16)) * (0.1 + 0.7 * t)) ** 2]\n"
     "  }\n"
     "  return stack(ys, axis = 0)\n"
     "}\n"
     "train { batch = synthetic(x = f32[T, 4, 16], y = f32[T, 4, 16])\n"
     "  loss = mse(m(batch.x), batch.y)\n  optim = adam(lr = 1e-3)\n  steps = 1 }\n"}};

static int count_kernels(Pool *pool, const Graph *g)
{
    Map set = map_new(pool);
    const CodegenOptions host = {0};
    CallList l = {0};
    const char *error;
    CHECK(codegen_list_calls(pool, g, &host, &l, &error));
    for (int i = 0; i < l.n; i++)
        map_set(&set, l.key[i], (uint64_t)i);
    return (int)set.len;
}

typedef struct Counts {
    int apart, in_place; /* without views and with them */
} Counts;

static Counts count(const struct Scan *scan, int steps)
{
    Pool *pool = pool_new();
    Counts c = {0};
    char *text = pool_printf(pool, "option T = %d\n%s", steps, scan->text);
    Elaborated r = elaborate_text(text, FRONTEND_TRAIN);
    PassContext ctx = {.graph = r.graph, .pool = r.pool};
    bool ok = r.graph && passes_run(&ctx, pipeline_before(r.pool, "remat"), NULL, NULL);
    c.apart = ok ? count_kernels(r.pool, ctx.graph) : 0;
    ok = ok && passes_run(&ctx, "views", NULL, NULL);
    c.in_place = ok ? count_kernels(r.pool, ctx.graph) : 0;
    CHECK_MSG(ok, "%s: %s", scan->name, ctx.error.message ? ctx.error.message : r.errors);
    elaborated_free(&r);
    pool_free(pool);
    return c;
}

static void check_scan(const struct Scan *scan)
{
    enum { SUMS = 4 };
    Counts few = count(scan, 8), many = count(scan, 64), more = count(scan, 144);
    printf("%s: %d kernels, %d, %d; with views %d, %d, %d\n", scan->name, few.apart, many.apart,
           more.apart, few.in_place, many.in_place, more.in_place);
    CHECK_MSG(many.apart == more.apart, "%s: %d kernels, then %d", scan->name, many.apart,
              more.apart);
    CHECK_MSG(many.apart <= few.apart + SUMS, "%s: %d kernels of 8 steps, %d of 64", scan->name,
              few.apart, many.apart);
    CHECK_MSG(more.in_place <= few.in_place + 2 * SUMS, "%s with views: %d kernels, then %d",
              scan->name, few.in_place, more.in_place);
}

/* Batches and widths of whole vectors; the rate of decay is a number, too. */
static const char *const sizes[] = {"option B = 32; option C = 48; option D = 0.1",
                                    "option B = 64; option C = 48; option D = 0.1",
                                    "option B = 32; option C = 160; option D = 0.1",
                                    "option B = 32; option C = 48; option D = 0.2"};

static const char sized[] =
    "model m(x: f32[B, 5, C]) {\n"
    "  param scale: f32[C] = ones; param bias: f32[5, 1] = zeros\n"
    "  return tanh(x * x + 0.5) * scale + bias\n"
    "}\n"
    "train { batch = synthetic(x = f32[B, 5, C], y = f32[B, 5, C])\n"
    "  loss = mse(m(batch.x), batch.y)\n  optim = adamw(lr = 1e-3, weight_decay = D)\n"
    "  steps = 1 }\n";

/* Images, channels that are summed over, and parts of sums. */
static const char *const images[] = {"option B = 4; option C = 16; option S = 32",
                                     "option B = 4; option C = 64; option S = 32",
                                     "option B = 8; option C = 16; option S = 48"};

static const char convolved[] =
    "model m(x: f32[B, C, S, S]) {\n"
    "  return x |> a: conv(32, 3, pad = 1) |> relu() |> b: conv(32, 3, pad = 1)\n"
    "}\n"
    "train { batch = synthetic(x = f32[B, C, S, S])\n"
    "  loss = mean(m(batch.x) ** 2)\n  optim = sgd(lr = 0.1, clip = 1.0)\n  steps = 1 }\n";

typedef bool IsCounted(const char *label);

static bool is_point(const char *label)
{
    return strchr(label, '+') || strcmp(label, "adam_step") == 0;
}

static bool is_pack(const char *label)
{
    return strncmp(label, "conv weights ", 13) == 0;
}

static bool is_join(const char *label)
{
    return strcmp(label, "reduce_join") == 0;
}

static bool is_sum(const char *label)
{
    return strcmp(label, "sum") == 0 || strcmp(label, "sumsq") == 0;
}

/* Adds the keys of the calls that are counted to the set. */
static void add_keys(Pool *pool, const char *options, const char *text, IsCounted *counted,
                     Map *set)
{
    Elaborated r = elaborate_text(pool_printf(pool, "%s\n%s", options, text), FRONTEND_TRAIN);
    PassContext ctx = {.graph = r.graph, .pool = r.pool};
    bool ok = r.graph && passes_run(&ctx, pipeline_before(r.pool, "remat"), NULL, NULL);
    const CodegenOptions host = {0};
    CallList l = {0};
    const char *error;
    CHECK_MSG(ok, "%s: %s", options, ctx.error.message ? ctx.error.message : r.errors);
    CHECK(ok && codegen_list_calls(r.pool, ctx.graph, &host, &l, &error));
    for (int i = 0; i < l.n; i++)
        if (counted(l.calls[i].label))
            map_set(set, pool_strdup(pool, l.key[i]), 1);
    elaborated_free(&r);
}

static void check_sizes(void)
{
    Pool *pool = pool_new();
    Map set = map_new(pool);
    add_keys(pool, sizes[0], sized, is_point, &set);
    size_t first = set.len;
    for (size_t i = 1; i < sizeof sizes / sizeof *sizes; i++)
        add_keys(pool, sizes[i], sized, is_point, &set);
    printf("element-wise: %zu kernels of one size, %zu of all\n", first, set.len);
    CHECK(first > 2);
    CHECK_MSG(set.len == first, "%zu kernels of one size, %zu of all", first, set.len);
    pool_free(pool);
}

/* The same ones of all images, or of every second: those of the same channels. */
static void check_images(IsCounted *counted, size_t step, const char *what)
{
    Pool *pool = pool_new();
    Map set = map_new(pool);
    add_keys(pool, images[0], convolved, counted, &set);
    size_t one = set.len;
    for (size_t i = step; i < sizeof images / sizeof images[0]; i += step)
        add_keys(pool, images[i], convolved, counted, &set);
    printf("%s: %zu kernels, %zu of all images\n", what, one, set.len);
    CHECK_MSG(one > 0 && set.len == one, "%s: %zu kernels, then %zu", what, one, set.len);
    pool_free(pool);
}

int main(void)
{
    check_sizes();
    check_images(is_pack, 1, "packed weights");
    check_images(is_join, 1, "joined sums");
    /* of 64 channels the squares of the weights are enough for chunks */
    check_images(is_sum, 2, "sums");
    for (size_t i = 0; i < sizeof scans / sizeof *scans; i++)
        check_scan(&scans[i]);
    return test_result();
}
