/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Steps with pieces of concatenations and slices where the whole lies (pass_views) leave the bits
 * of steps that copy them, in a smaller arena, under budgets too.  SCRIMP_ALL=1: all cases;
 * SCRIMP_CASE: one. */
#include "check.h"
#include "tests/support/run/model_run.h"
#include "tests/support/sample.h"

#include "ir/strided_view.h"
#include "passes/remat/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 3 };
static const uint64_t data_seed = 23;

typedef struct Case {
    const char *name, *text, *budget;
    bool smaller; /* the arena; else the copies go at least */
    bool spends;  /* the schedule has a peak above the budget, into which the arena fits */
    bool quick;
} Case;

#define TRAIN                                                                                      \
    "train {\n"                                                                                    \
    "  batch = synthetic(x = f32[2, 3, 18, 18], label = i32[2])\n"                                 \
    "  loss = cross_entropy(m(batch.x), batch.label)\n"                                            \
    "  optim = sgd(lr = 0.05, momentum = 0.9)\n  steps = 10\n}\n"

#define DENSE(layers, join)                                                                        \
    "block Layer(x, growth) {\n"                                                                   \
    "  return x |> n1: bn() |> relu() |> c1: conv(4 * growth, 1, bias = false)\n"                  \
    "           |> n2: bn() |> relu() |> c2: conv(growth, 3, pad = 1, bias = false)\n}\n"          \
    "model m(x: f32[2, 3, 18, 18]) {\n"                                                            \
    "  x = x |> c0: conv(17, 3, pad = 1, bias = false) |> n0: bn() |> relu() |> maxpool(2)\n"      \
    "  features = [x]\n"                                                                           \
    "  for i in 0.." layers " {\n" join "  }\n"                                                    \
    "  x = concat(features, axis = 1) if len(features) > 1 else x\n"                               \
    "  return x |> n5: bn() |> relu() |> global_avgpool() |> flatten() |> fc: "                    \
    "linear(10)\n}\n" TRAIN

#define GROWN "    y = x |> l[i]: Layer(7)\n    x = concat([x, y], axis = 1)\n"
static const char dense[] = DENSE("5", GROWN);
static const char dense3[] = DENSE("3", GROWN);
static const char listed[] = DENSE(
    "5", "    y = concat(features, axis = 1) |> l[i]: Layer(7)\n    features = features ++ [y]\n");

#define INCEPTION(w1, w2, w3, last)                                                                \
    "block Unit(x, out, kernel, pad = 0) {\n"                                                      \
    "  return x |> conv: conv(out, kernel, pad = pad, bias = false) |> bn: bn() |> relu()\n}\n"    \
    "block Mixed(x) {\n"                                                                           \
    "  return concat([x |> b1: Unit(" w1 ", 1),\n"                                                 \
    "                 x |> b2: seq { Unit(8, 1); Unit(" w2 ", 3, pad = 1) },\n"                    \
    "                 x |> b3: seq { maxpool(3, stride = 1, pad = 1); Unit(" w3                    \
    ", 1) }], axis = 1)\n"                                                                         \
    "}\n"                                                                                          \
    "model m(x: f32[2, 3, 18, 18]) {\n"                                                            \
    "  return x |> c: Unit(16, 3) |> m1: Mixed() |> m2: Mixed()" last "\n"                         \
    "           |> global_avgpool() |> flatten() |> fc: linear(10)\n}\n" TRAIN

static const char inception[] = INCEPTION("13", "21", "9", " |> m3: Mixed()");
/* Of whole runs of 16: masks are made of parts. */
static const char inception16[] = INCEPTION("16", "48", "32", " |> m3: Mixed()");
static const char inception16_2[] = INCEPTION("16", "48", "32", "");

static const char unet[] =
    "model m(x: f32[2, 3, 18, 18]) {\n"
    "  a = x |> c1: conv(24, 3) |> relu()\n"
    "  b = a |> maxpool(2) |> c2: conv(32, 3, pad = 1) |> relu() |> up: deconv(24, 2, stride = 2) "
    "|> relu()\n"
    "  b = b |> c3: conv(24, 3) |> relu()\n"
    "  y = concat([b, center_crop(a, like = b)], axis = 1)\n"
    "  return y |> c4: conv(16, 3) |> relu() |> global_avgpool() |> flatten() |> fc: linear(10)\n"
    "}\n" TRAIN;

static const char gates[] =
    "block Cell(x, h, c) {\n"
    "  g = (x |> ih: linear(44)) + (h |> hh: linear(44))\n"
    "  i, f, o, u = split(g, 4, axis = -1)\n"
    "  c = sigmoid(f) * c + sigmoid(i) * tanh(u)\n"
    "  return sigmoid(o) * tanh(c), c\n}\n"
    "model m(x: f32[2, 3, 18, 18]) {\n"
    "  x = x |> flatten()\n  h, c = [zeros([2, 11]), zeros([2, 11])]\n  ys = []\n"
    "  for t in 0..4 {\n"
    "    h, c = shared cell: Cell(x, h, c)\n    ys = ys ++ [dropout(h, 0.5)]\n  }\n"
    "  return concat(ys, axis = 1) |> fc: linear(10)\n}\n" TRAIN;

static const Case cases[] = {
    {"dense", dense, "", true, false, false},
    {"dense, 50%", dense, "50%", true, true, false},
    {"dense, three layers, 50%", dense3, "50%", true, true, true},
    {"dense, min", dense, "min", false, false, false},
    {"listed", listed, "", true, false, false},
    {"inception", inception, "", true, false, false},
    {"inception, 40%", inception, "40%", false, false, false},
    {"inception, of 16", inception16, "", true, false, false},
    {"inception, of 16, 40%", inception16, "40%", false, false, false},
    {"inception, of 16, two blocks, 60%", inception16_2, "60%", false, false, true},
    {"u-net", unet, "", true, false, true},
    {"gates", gates, "", false, false, true},
};

static int count_copies(const Graph *g)
{
    int n = 0;
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *node = graph_node(g, g->order.data[k]);
        for (int i = 0; node->op == OP_concat && i < node->n_in; i++)
            n += !concat_has_joined(node, i);
        n += node->op == OP_slice;
    }
    return n;
}

/* Masks that are made of a piece where it lies. */
static int count_masks(const Graph *g)
{
    int n = 0;
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *node = graph_node(g, g->order.data[k]);
        n += node->op == OP_relu_mask && !value_is_dense(g, node->in[0]);
    }
    return n;
}

static void compare(const Case *c, const Built *with, const Built *without)
{
    Running a, b;
    bool open = run_open(&a, with, 2);
    open = run_open(&b, without, 2) && open;
    if (open) {
        run_initialize(&a, 5);
        run_initialize(&b, 5);
    }
    for (int64_t step = 0; open && step < STEPS; step++) {
        run_step(&a, data_seed, step);
        run_step(&b, data_seed, step);
        const char *where = run_difference(&a, &b);
        CHECK_MSG(!where, "%s: step %lld differs at %s", c->name, (long long)step, where);
        CHECK_MSG(run_output(&a, "loss") == run_output(&a, "loss"), "%s: NaN", c->name);
        if (where)
            break;
    }
    run_close(&a);
    run_close(&b);
}

static const char without_views[] =
    "fold,cse,dce,layout,fold,autodiff,fold,cse,dce,fuse,order,remat,plan";

static void check_case(const Case *c)
{
    Pool *pool = pool_new();
    Built with, without;
    BuildOptions o = {.budget = c->budget};
    bool built = model_build(pool, c->text, &o, &with);
    o.pipeline = without_views;
    built = model_build(pool, c->text, &o, &without) && built;
    CHECK_MSG(built, "%s: is not built", c->name);
    if (built) {
        int64_t more = without.plan->arena_bytes, less = with.plan->arena_bytes;
        printf("%s: %lld instead of %lld bytes, %d copies instead of %d, %d masks of pieces\n",
               c->name, (long long)less, (long long)more, count_copies(with.graph),
               count_copies(without.graph), count_masks(with.graph));
        CHECK_MSG(c->smaller ? less < more : less <= more, "%s: arena %lld, without %lld", c->name,
                  (long long)less, (long long)more);
        const RematReport *r = &with.report;
        CHECK_MSG(less <= r->budget_bytes, "%s: the arena is above the budget", c->name);
        CHECK_MSG(r->overhead_lower_bound_percent <= r->overhead_percent + 1e-9,
                  "%s: overhead %g, at least %g", c->name, r->overhead_percent,
                  r->overhead_lower_bound_percent);
        CHECK_MSG(!c->spends || r->peak_bytes > r->budget_bytes,
                  "%s: what pieces save is not spent: peak %lld", c->name,
                  (long long)r->peak_bytes);
        CHECK_MSG(count_copies(with.graph) < count_copies(without.graph), "%s", c->name);
        CHECK_MSG(!strstr(c->name, "of 16") || count_masks(with.graph) > 0, "%s", c->name);
        compare(c, &with, &without);
    }
    pool_free(pool);
}

int main(void)
{
    const char *only = getenv("SCRIMP_CASE");
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        if (only ? strcmp(only, cases[k].name) == 0 : cases[k].quick || sample_all())
            check_case(&cases[k]);
    return test_result();
}
