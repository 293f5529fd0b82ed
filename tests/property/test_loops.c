/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Loops of the language (`scan`): training with the loop has the bits of training with the loop
 * written out, under budgets too; and it follows ir/eval's doubles. */
#include "check.h"
#include "ir/loop.h"
#include "passes/rewrite.h"
#include "tests/support/run/step_compare.h"

#include <string.h>

enum { STEPS = 4 };

typedef struct Example {
    const char *name, *blocks, *loop, *unrolled; /* the loops make ys: f32[T, N, H] of x and h */
    bool other_sums; /* a gradient that comes through several steps unchanged is added up step by
                        step, and in the loop that is written out all at once */
} Example;

static const Example examples[] = {
    {"lstm",
     "block Cell(h, c, x) {\n"
     "  g = (x |> ih: linear(4 * H)) + (h |> hh: linear(4 * H, bias = false))\n"
     "  i, f, o, u = split(g, 4, axis = -1)\n"
     "  c = sigmoid(f) * c + sigmoid(i) * tanh(u)\n"
     "  h = sigmoid(o) * tanh(c)\n"
     "  return h, c, h\n"
     "}\n",
     "  last, c, ys = cell: scan(Cell, [h, h], x)\n"
     "  ys = ys + last\n",
     "  c = h\n"
     "  ys = []\n"
     "  for t in 0..T { h, c, y = shared cell: Cell(h, c, x[t])\n ys = ys ++ [y] }\n"
     "  ys = stack(ys) + h\n",
     false},
    {"carries that change places, results that are not computed",
     "block Cell(a, b, x, w) {\n"
     "  z = tanh(a @ w + x)\n"
     "  return b, z, a, x * 2, z\n"
     "}\n",
     "  a, b, as, xs, ys = scan(Cell, [h, x[0]], x, [$w])\n"
     "  ys = ys + as * xs + a * b\n",
     "  a = h\n b = x[0]\n as = []\n xs = []\n ys = []\n"
     "  for t in 0..T {\n"
     "    a, b, s, u, y = Cell(a, b, x[t], $w)\n"
     "    as = as ++ [s]\n xs = xs ++ [u]\n ys = ys ++ [y]\n"
     "  }\n"
     "  ys = stack(ys) + stack(as) * stack(xs) + a * b\n",
     true},
    {"from the end, inside of another",
     "block Step(h, x, w) {\n  h = tanh(h @ w) * x\n  return h, h\n}\n"
     "block Twice(h, x, w) {\n"
     "  h, ys = scan(Step, h, stack([x, x * 0.5, x + 1]), w, reverse = true)\n"
     "  return h, ys[0]\n"
     "}\n"
     "block Written(h, x, w) {\n"
     "  h, y2 = Step(h, x + 1, w)\n h, y1 = Step(h, x * 0.5, w)\n h, y0 = Step(h, x, w)\n"
     "  return h, y0\n"
     "}\n",
     "  h, ys = scan(Twice, h, x, $w)\n",
     "  ys = []\n"
     "  for t in 0..T { h, y = Written(h, x[t], $w)\n ys = ys ++ [y] }\n"
     "  ys = stack(ys)\n",
     false},
};

/* A loop from the end with results: the steps that are in no full run are the first elements. */
static const Example from_the_end = {
    "from the end",
    "block Cell(h, x) {\n  z = sigmoid((h |> hh: linear(H)) + x)\n  h = z * h + (1 - z) * x\n"
    "  return h, h * z\n}\n",
    "  h, ys = cell: scan(Cell, h, x, reverse = true)\n  ys = ys + h\n", "", false};

/* Four loops deep, all of whose steps draw numbers of their own. */
static const Example deepest = {
    "four loops",
    "block D(h, x) {\n  y = dropout(x, 0.5)\n  return tanh(h + y), y\n}\n"
    "block C(h, x) {\n  h, ys = scan(D, h, stack([x, x]))\n  return h, ys[1]\n}\n"
    "block B(h, x) {\n  h, ys = scan(C, h, stack([x, x]))\n  return h, ys[1]\n}\n"
    "block A(h, x) {\n  h, ys = scan(B, h, stack([x, x]))\n  return h, ys[1]\n}\n",
    "  h, ys = scan(A, h, x)\n", "", false};

static const char *text_of(Pool *pool, const Example *e, bool loop, const char *options)
{
    return pool_printf(
        pool,
        "option N = 3, T = 5, H = 6\n%s"
        "model m(x: f32[N, T, H], start: f32[N, H]) {\n"
        "  x = transpose(x, 0, 1)\n"
        "  param w: f32[H, H] = normal(0.4)\n"
        "  h = start |> begin: linear(H)\n%s"
        "  return ys |> head: linear(10)\n"
        "}\n"
        "train {\n"
        "  batch = synthetic(x = f32[N, T, H], start = f32[N, H], y = i32[N, T])\n"
        "  loss = cross_entropy(transpose(m(batch.x, batch.start), 0, 1), batch.y)%s\n"
        "  optim = adam(lr = 0.01)\n  steps = 4\n%s}\n",
        e->blocks, loop ? e->loop : e->unrolled,
        strstr(e->loop, "$w") ? "" : " + 0.01 * sum($w ** 2)", options);
}

static void expect_equal(const char *name, const Built *a, const Built *b, int threads)
{
    Running left, right;
    if (!run_open(&left, a, 1) || !run_open(&right, b, threads)) {
        CHECK_MSG(false, "%s: no memory", name);
        return;
    }
    run_initialize(&left, 7);
    run_initialize(&right, 7);
    for (int64_t step = 0; step < STEPS; step++) {
        run_step(&left, 7, step);
        run_step(&right, 7, step);
        const char *where = run_difference(&left, &right);
        CHECK_MSG(!where, "%s: step %lld differs in %s", name, (long long)step, where);
    }
    run_close(&left);
    run_close(&right);
}

static void expect_follows(const char *name, const Built *built, const Graph *plain)
{
    const double tolerance = 5e-5;
    Running r;
    if (!run_open(&r, built, 2))
        return;
    run_initialize(&r, 11);
    EvalState *s = eval_new(built->pool, plain);
    eval_from_run(s, &r, 11, 0);
    run_step(&r, 11, 0);
    eval_run(s, false);
    const char *fault = compare_numbers(&r, s, tolerance);
    eval_commit(s);
    fault = fault ? fault : compare_state(&r, s, 0.01, tolerance);
    CHECK_MSG(!fault, "%s: %s", name, fault);
    run_close(&r);
}

static void test_example(const Example *e, const char *options)
{
    Pool *pool = pool_new();
    const char *text = text_of(pool, e, true, options);
    Built loop, unrolled, tight, plain;
    const BuildOptions whole = {.budget = "100%"}, least = {.budget = "min"};
    bool built = model_build(pool, text, &whole, &loop) &&
                 model_build(pool, text, &least, &tight) &&
                 model_build(pool, text_of(pool, e, false, options), &whole, &unrolled) &&
                 model_plan(pool, text, &(BuildOptions){.pipeline = "autodiff"}, &plain);
    CHECK_MSG(built, "%s", e->name);
    if (built) {
        if (!e->other_sums)
            expect_equal(e->name, &loop, &unrolled, 1);
        expect_equal(e->name, &loop, &loop, 3);
        expect_equal(e->name, &loop, &tight, 1);
        if (!*options)
            expect_follows(e->name, &loop, plain.graph);
    }
    pool_free(pool);
}

/* Loops that keep fewer of their carries, as small budgets want them: the same bits, for numbers of
 * steps with divisors and without. */
static void test_checkpoints(const Example *e, const char *steps, int *twice)
{
    Pool *pool = pool_new();
    const OptionDef defs[] = {{"T", steps}, {"H", "16"}};
    const char *text = text_of(pool, e, true, "");
    Built whole, tight;
    if (model_build(pool, text, &(BuildOptions){.budget = "100%", .defs = defs, .n_defs = 2},
                    &whole) &&
        model_build(pool, text, &(BuildOptions){.budget = "min", .defs = defs, .n_defs = 2},
                    &tight)) {
        const char *loops = tight.report.loops;
        CHECK_MSG(!whole.report.loops, "%s: %s, %d again, %.3f%%", e->name, whole.report.loops,
                  whole.report.recomputed_ops, whole.report.overhead_percent);
        CHECK_MSG(loops && strstr(loops, "keeps every"), "%s, %s steps: all states are kept",
                  e->name, steps);
        *twice += loops && strstr(loops, "fewer while");
        CHECK(tight.plan->arena_bytes < whole.plan->arena_bytes);
        expect_equal(e->name, &whole, &tight, 2);
    }
    pool_free(pool);
}

/* Whatever lies between the smallest arena and that in which everything is kept: the same bits. */
static void test_between(const Example *e)
{
    Pool *pool = pool_new();
    const OptionDef defs[] = {{"T", "47"}, {"H", "16"}};
    const char *text = text_of(pool, e, true, "");
    Built whole, tight, some;
    int forms = 0;
    const BuildOptions most = {.budget = "100%", .defs = defs, .n_defs = 2},
                       least = {.budget = "min", .defs = defs, .n_defs = 2};
    if (model_build(pool, text, &most, &whole) && model_plan(pool, text, &least, &tight)) {
        int64_t low = tight.plan->arena_bytes, high = whole.plan->arena_bytes;
        for (int part = 1; part < 4; part++) {
            int64_t budget = low + (high - low) * part / 4;
            BuildOptions o = {
                .budget = pool_printf(pool, "%lld", (long long)budget), .defs = defs, .n_defs = 2};
            if (!model_build(pool, text, &o, &some))
                break;
            CHECK(some.plan->arena_bytes <= budget);
            forms += some.report.loops != NULL;
            expect_equal(e->name, &whole, &some, 1);
        }
    }
    CHECK(forms > 0);
    pool_free(pool);
}

/* Any number of steps, also a few: runs, and steps that are in none. */
static void test_numbers_of_steps(void)
{
    for (int k = 0; k < 5; k++) {
        Pool *pool = pool_new();
        const char *steps =
            pool_printf(pool, "%d", k < 3 ? 3 + k : (int)(rng_bits(5, (uint64_t)k, 0, 0) % 40) + 6);
        const OptionDef defs[] = {{"T", steps}};
        const char *text = text_of(pool, k % 2 ? &examples[0] : &from_the_end, true, "");
        Built whole, tight;
        if (model_build(pool, text, &(BuildOptions){.budget = "100%", .defs = defs, .n_defs = 1},
                        &whole) &&
            model_build(pool, text, &(BuildOptions){.budget = "min", .defs = defs, .n_defs = 1},
                        &tight))
            expect_equal(steps, &whole, &tight, 1);
        pool_free(pool);
    }
}

static int products(const Graph *g)
{
    int n = 0;
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *node = graph_node(g, g->order.data[k]);
        n += op_table[node->op].op_class == OP_CLASS_MATRIX;
        n += node->body ? products(node->body) : 0;
    }
    return n;
}

/* Where memory is there for it, no product of a step is computed twice: the gradient's body has two
 * for each of the step's, less that of the data, and no more. */
static void test_keeps_products(void)
{
    Pool *pool = pool_new();
    Built built;
    int n[2] = {0}, loops = 0;
    if (model_plan(pool, text_of(pool, &examples[0], true, ""), &(BuildOptions){.budget = "100%"},
                   &built))
        for (size_t k = 0; k < built.graph->order.len; k++) {
            const Node *node = graph_node(built.graph, built.graph->order.data[k]);
            if (node_is_loop(node) && loops < 2)
                n[loops++] = products(node->body);
        }
    CHECK_MSG(loops == 2 && n[0] == 2 && n[1] == 3, "%d loops, products: %d and %d", loops, n[0],
              n[1]);
    pool_free(pool);
}

/* Hundreds of steps within a small part of what they take when all of them are kept. */
static void test_many_steps(void)
{
    Pool *pool = pool_new();
    const OptionDef defs[] = {{"T", "400"}, {"H", "16"}};
    const char *text = text_of(pool, &examples[0], true, "");
    Built whole, tight;
    if (model_build(pool, text, &(BuildOptions){.budget = "100%", .defs = defs, .n_defs = 2},
                    &whole) &&
        model_build(pool, text, &(BuildOptions){.budget = "50%", .defs = defs, .n_defs = 2},
                    &tight)) {
        CHECK(tight.report.loops);
        expect_equal("400 steps", &whole, &tight, 2);
    }
    pool_free(pool);
}

/* Bodies compute in f32 beside activations in bf16. */
static void test_bf16(void)
{
    Pool *pool = pool_new();
    const char *text = text_of(pool, &examples[0], true, "  precision = bf16\n");
    Built whole, tight;
    if (model_build(pool, text, &(BuildOptions){.budget = "100%"}, &whole) &&
        model_build(pool, text, &(BuildOptions){.budget = "min"}, &tight))
        expect_equal("bf16", &whole, &tight, 2);
    pool_free(pool);
}

/* What nothing reads is not kept for every step. */
static void test_unread_results(void)
{
    static const Example unread = {
        "results that nothing reads",
        "block Cell(h, x) {\n  h = tanh(h * x)\n  return h, h * 2, h + x\n}\n",
        "  h, as, bs = scan(Cell, h, x)\n  ys = bs * h\n", "", false};
    Pool *pool = pool_new();
    Built built;
    if (model_plan(pool, text_of(pool, &unread, true, ""), &(BuildOptions){.budget = "100%"},
                   &built)) {
        const Graph *g = built.graph;
        const int *uses = count_uses(g, pool);
        int loops = 0;
        for (size_t k = 0; k < g->order.len; k++) {
            const Node *n = graph_node(g, g->order.data[k]);
            loops += node_is_loop(n);
            for (int i = 0; node_is_loop(n) && i < n->n_out; i++)
                CHECK_MSG(i < loop_shape(n).carries || uses[n->out[i]], "%s",
                          graph_value(g, n->out[i])->name);
        }
        CHECK(loops == 2);
    }
    pool_free(pool);
}

/* Dropout in a loop: a recomputed step draws the same numbers. */
static void test_dropout(void)
{
    static const Example drops = {
        "dropout", "block Cell(h, x) {\n  h = tanh(h + x) |> dropout(0.5)\n  return h, h\n}\n",
        "  h, ys = scan(Cell, h, x)\n", "", false};
    Pool *pool = pool_new();
    const char *text = text_of(pool, &drops, true, "");
    Built whole, tight;
    if (model_build(pool, text, &(BuildOptions){.budget = "100%"}, &whole) &&
        model_build(pool, text, &(BuildOptions){.budget = "min"}, &tight))
        expect_equal("dropout", &whole, &tight, 2);
    pool_free(pool);
}

/* Every step draws its own numbers: two of them drop other elements. */
static void test_own_numbers(void)
{
    const char *text = "block Cell(h, x) {\n  y = dropout(x, 0.5)\n  return h + y, y\n}\n"
                       "model m(x: f32[2, 64]) {\n"
                       "  param w: f32[64] = normal(0.4)\n"
                       "  last, ys = scan(Cell, $w, x)\n"
                       "  return last, to_f32(ys == 0)\n"
                       "}\n"
                       "train {\n"
                       "  batch = synthetic(x = f32[2, 64])\n  last, dropped = m(batch.x)\n"
                       "  loss = sum(last ** 2)\n  alike = mean(to_f32(dropped[0] == dropped[1]))\n"
                       "  metrics = [alike]\n  optim = sgd(lr = 0.01)\n  steps = 1\n}\n";
    Pool *pool = pool_new();
    Built built;
    Running r;
    if (model_build(pool, text, &(BuildOptions){.budget = "100%"}, &built) &&
        run_open(&r, &built, 1)) {
        run_initialize(&r, 1);
        run_step(&r, 1, 0);
        double alike = run_output(&r, "alike");
        CHECK_MSG(alike > 0.2 && alike < 0.8, "%g of the elements are dropped alike", alike);
        run_close(&r);
    }
    pool_free(pool);
}

int main(void)
{
    int twice = 0;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        test_example(&examples[i], "");
        test_example(&examples[i], "  accumulate = 2\n");
    }
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        test_checkpoints(&examples[i], "60", &twice);
    }
    CHECK(twice > 0);
    test_checkpoints(&examples[0], "61", &twice);
    test_checkpoints(&examples[2], "61", &twice);
    test_checkpoints(&from_the_end, "62", &twice);
    test_checkpoints(&deepest, "60", &twice);
    test_between(&examples[0]);
    test_numbers_of_steps();
    test_keeps_products();
    test_many_steps();
    test_bf16();
    test_unread_results();
    test_dropout();
    test_own_numbers();
    return test_result();
}
