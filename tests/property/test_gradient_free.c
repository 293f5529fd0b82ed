/* SPDX-License-Identifier: GPL-3.0-or-later */
/* sgd(gradient_free = true) trains as plain momentum SGD does, but for the roundings of fused
 * multiply-adds, without storing the gradients of matrix products: over layers of several kinds,
 * weight decay, micro-batches and budgets. */
#include "check.h"
#include "tests/support/run/model_run.h"

#include <math.h>
#include <string.h>

enum { STEPS = 4 };
static const uint64_t data_seed = 11;

typedef struct Case {
    const char *name, *text; /* of the model; %s: whether gradient_free */
    const char *budget;
    bool smaller; /* the peak falls */
} Case;

#define TRAIN(loss, settings, more)                                                                \
    "train {\n"                                                                                    \
    "  batch = synthetic(x = f32[4, 3, 12, 12], label = i32[4])\n"                                 \
    "  loss = " loss "\n"                                                                          \
    "  optim = sgd(lr = 0.05, momentum = 0.9" settings "%s)\n" more "  steps = 10\n}\n"
#define CE "cross_entropy(m(batch.x), batch.label)"

static const char dense[] = "model m(x: f32[4, 3, 12, 12]) {\n"
                            "  x = x |> flatten() |> a: linear(300) |> relu()\n"
                            "  return x |> b: linear(280) |> gelu() |> c: linear(10)\n"
                            "}\n" TRAIN(CE, ", weight_decay = 0.01", "");
static const char images[] =
    "model m(x: f32[4, 3, 12, 12]) {\n"
    "  x = x |> c1: conv(16, 3, pad = 1, bias = false) |> b1: bn() |> relu()\n"
    "  x = x |> c2: conv(16, 3, pad = 1, groups = 16) |> relu()\n"
    "  x = x |> c3: conv(24, 1) |> relu() |> c4: conv(24, 3, stride = 2, pad = 1) |> relu()\n"
    "  return x |> c5: conv(10, 6) |> flatten()\n"
    "}\n" TRAIN(CE, ", weight_decay = 0.001", "");
static const char parts[] = "model m(x: f32[4, 3, 12, 12]) {\n"
                            "  x = x |> c1: conv(8, 3, pad = 1) |> relu() |> flatten()\n"
                            "  return x |> a: linear(40) |> n: layernorm() |> c: linear(10)\n"
                            "}\n" TRAIN(CE, "", "  accumulate = 3\n");

static const Case cases[] = {
    {"dense", dense, "", true},          {"dense at min", dense, "min", false},
    {"images", images, "", false},       {"images at min", images, "min", false},
    {"micro-batches", parts, "", false},
};

static bool build(Pool *pool, const Case *c, bool gradient_free, Built *out)
{
    BuildOptions o = {.budget = c->budget};
    const char *option = gradient_free ? ", gradient_free = true" : "";
    return model_build(pool, pool_printf(pool, c->text, option), &o, out);
}

static int count_outputs(const Graph *g, const char *name)
{
    int n = 0;
    for (size_t i = 0; i < g->outputs.len; i++)
        n += strcmp(g->outputs.data[i].name, name) == 0;
    return n;
}

/* Products and convolutions that write the momentum themselves. */
static int count_fused_updates(const Graph *g)
{
    int n = 0;
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *node = graph_node(g, g->order.data[i]);
        if (!node->body || graph_value(g, node->out[0])->writes == VALUE_NONE)
            continue;
        for (size_t k = 0; k < node->body->order.len; k++) {
            OpKind op = graph_node(node->body, node->body->order.data[k])->op;
            n += op_table[op].op_class == OP_CLASS_MATRIX;
        }
    }
    return n;
}

/* The persistent tensor that differs by more than rounding; NULL = none. */
static const char *where_they_differ(const Running *a, const Running *b)
{
    const Graph *g = a->built->graph, *h = b->built->graph;
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (!node_is_persistent(n))
            continue;
        const char *name = graph_value(g, n->out[0])->name;
        const float *x = run_at(a, n->out[0]), *y = run_at(b, graph_find(h, name));
        for (int64_t k = 0; k < type_elements(value_type(g, n->out[0])); k++)
            if (!(fabs((double)x[k] - (double)y[k]) <= 1e-6 * (1 + fabs((double)y[k]))))
                return name;
    }
    return NULL;
}

static void train_both(const Case *c, const Built *plain, const Built *without)
{
    Running a, b;
    const char *where = NULL;
    if (!run_open(&a, without, 2) || !run_open(&b, plain, 1))
        return;
    run_initialize(&a, 1);
    run_initialize(&b, 1);
    for (int64_t step = 0; step < STEPS && !where; step++) {
        run_step(&a, data_seed, step);
        run_step(&b, data_seed, step);
        where = where_they_differ(&a, &b);
        CHECK_MSG(!where, "%s: step %lld changes %s", c->name, (long long)step + 1, where);
    }
    CHECK(isfinite(run_output(&a, "loss")));
    run_close(&a);
    run_close(&b);
}

static void check_case(const Case *c)
{
    Pool *pool = pool_new();
    Built plain, without;
    if (build(pool, c, false, &plain) && build(pool, c, true, &without)) {
        int fused = count_fused_updates(without.graph);
        printf("%s: peak %lld, without gradients %lld; %d fused updates\n", c->name,
               (long long)plain.plan->peak_bytes, (long long)without.plan->peak_bytes, fused);
        CHECK(count_outputs(plain.graph, "grad_norm") == 1);
        CHECK(count_outputs(without.graph, "grad_norm") == 0);
        CHECK(fused > 0 || without.graph->train.accumulate > 1);
        CHECK(without.plan->peak_bytes <= plain.plan->peak_bytes);
        CHECK(!c->smaller || without.plan->peak_bytes < plain.plan->peak_bytes);
        train_both(c, &plain, &without);
        codegen_unload(plain.step);
        codegen_unload(without.step);
    }
    pool_free(pool);
}

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i]);
    return test_result();
}
