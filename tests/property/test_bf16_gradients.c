/* SPDX-License-Identifier: GPL-3.0-or-later */
/* precision = bf16 computes the gradients of f32 up to the rounding of activations: a compiled step
 * in bf16 against ir/eval's doubles of the step in f32 that autodiff alone makes, parameter by
 * parameter.  A factor that is lost or a term that is dropped is far beyond the bound. */
#include "check.h"
#include "tests/support/run/model_run.h"

#include <math.h>

/* bound: of the norm of the difference, as a part of the gradient's, of every parameter.  bf16
 * rounds by at most 2^-9, and the roundings of a step add up like noise.  ReLU and max pooling send
 * a gradient elsewhere where rounding decides between two numbers. */
typedef struct Model {
    const char *name, *text;
    double bound;
} Model;

#define TRAIN(fields, loss)                                                                        \
    "train {\n  precision = bf16\n  batch = synthetic(" fields ")\n  loss = " loss                 \
    "\n  optim = sgd(lr = 1)\n  steps = 1\n}\n"

static const Model models[] = {
    {"products, norms and gates",
     "model m(x: f32[6, 12]) {\n"
     "  h = x |> a: linear(24) |> ln: layernorm() |> gelu()\n"
     "  g = sigmoid(h |> gate: linear(24)) * tanh(h |> up: linear(24))\n"
     "  g = concat([g, h * 0.5], axis = 1) |> mix: linear(16)\n"
     "  return softmax(g) * 3 + exp(g * 0.1) |> out: linear(10)\n"
     "}\n" TRAIN("x = f32[6, 12], y = i32[6]", "cross_entropy(m(batch.x), batch.y)"),
     0.025},
    {"a transformer with a tied head",
     "block Layer(x) {\n"
     "  q, k, v = x |> ln1: layernorm() |> qkv: linear(72) |> split(3, axis = -1)\n"
     "  q, k, v = [rearrange(t, \"b t (h d) -> b h t d\", h = 3) for t in [q, k, v]]\n"
     "  a = einsum(\"b h t d, b h s d -> b h t s\", q, k) * 8 ** -0.5\n"
     "  a = a |> causal_mask() |> softmax(axis = -1)\n"
     "  a = einsum(\"b h t s, b h s d -> b h t d\", a, v) |> rearrange(\"b h t d -> b t (h d)\")\n"
     "  x = x + (a |> out: linear(24))\n"
     "  return x + (x |> ln2: layernorm() |> up: linear(48) |> gelu() |> down: linear(24))\n"
     "}\n"
     "model m(ids: i32[3, 9]) {\n"
     "  x = (ids |> wte: embedding(10, 24)) + (iota(9) |> wpe: embedding(9, 24))\n"
     "  x = x |> one: Layer() |> two: Layer() |> ln: layernorm()\n"
     "  return affine(x, $wte.weight)\n"
     "}\n" TRAIN("x = i32[3, 9], y = i32[3, 9]", "cross_entropy(m(batch.x), batch.y)"),
     0.025},
    {"attention whose scores are tensors",
     "model m(x: f32[2, 7, 12]) {\n"
     "  q = x |> q: linear(12)\n  k = x |> k: linear(12, bias = false)\n  v = x |> v: linear(12)\n"
     "  p = softmax(einsum(\"b t d, b s d -> b t s\", q, k))\n"
     "  y = einsum(\"b t s, b s d -> b t d\", p * p, v)\n"
     "  return y |> out: linear(5)\n"
     "}\n" TRAIN("x = f32[2, 7, 12], y = f32[2, 7, 5]", "mse(m(batch.x), batch.y)"),
     0.025},
    {"convolutions, batch norm, pooling and a shortcut",
     "block Unit(x) {\n"
     "  y = x |> c1: conv(8, 3, pad = 1, bias = false) |> bn1: bn() |> silu()\n"
     "  return silu(x + (y |> c2: conv(8, 3, pad = 1, bias = false) |> bn2: bn()))\n"
     "}\n"
     "model m(x: f32[4, 3, 12, 12]) {\n"
     "  x = x |> stem: conv(8, 3, pad = 1) |> silu() |> avgpool(2)\n"
     "  x = x |> one: Unit() |> depth: conv(8, 3, pad = 1, groups = 8) |> silu()\n"
     "  return mean(x, axis = [2, 3]) |> fc: linear(10)\n"
     "}\n" TRAIN("x = f32[4, 3, 12, 12], y = i32[4]", "cross_entropy(m(batch.x), batch.y)"),
     0.025},
    {"max pooling and upsampling",
     "model m(x: f32[2, 8, 8, 8]) {\n"
     "  a = x |> c1: conv(8, 3, pad = 1) |> silu()\n"
     "  b = a |> maxpool(2) |> c2: conv(12, 3, pad = 1) |> relu()\n"
     "  up = b |> up: deconv(8, 2, stride = 2)\n"
     "  x = concat([a, up, resize(b, [8, 8])], axis = 1)\n"
     "  return x |> head: conv(3, 1)\n"
     "}\n" TRAIN("x = f32[2, 8, 8, 8], y = f32[2, 3, 8, 8]", "mse(m(batch.x), batch.y)"),
     0.15},
    {"a recurrence over shared weights",
     "block Cell(x, h, c) {\n"
     "  i, f, o, u = (x |> ih: linear(32)) + (h |> hh: linear(32)) |> split(4, axis = -1)\n"
     "  c = sigmoid(f) * c + sigmoid(i) * tanh(u)\n"
     "  return sigmoid(o) * tanh(c), c\n"
     "}\n"
     "model m(ids: i32[3, 5]) {\n"
     "  e = ids |> embed: embedding(10, 8)\n"
     "  h, c = [zeros([3, 8]), zeros([3, 8])]\n"
     "  hs = []\n"
     "  for t in 0..5 {\n"
     "    h, c = shared cell: Cell(e[.., t], h, c)\n"
     "    hs = hs ++ [h]\n"
     "  }\n"
     "  return stack(hs, axis = 1) |> out: linear(10)\n"
     "}\n" TRAIN("x = i32[3, 5], y = i32[3, 5]", "cross_entropy(m(batch.x), batch.y)"),
     0.025},
};

static double norm(const double *x, const double *less, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (x[i] - (less ? less[i] : 0)) * (x[i] - (less ? less[i] : 0));
    return sqrt(sum);
}

/* What sgd with a learning rate of 1 took from the weights against the gradient. */
static void check_gradient(const Model *m, const EvalState *before, const EvalState *after,
                           ValueId param)
{
    const Graph *g = before->graph;
    const char *name = graph_value(g, param)->name;
    ValueId grad = graph_find(g, pool_printf(before->pool, "$d.%s", name + 1));
    int64_t n = type_elements(value_type(g, param));
    double *taken = POOL_ARRAY(before->pool, (size_t)n, double);
    CHECK_MSG(grad != VALUE_NONE, "%s: %s has no gradient", m->name, name);
    if (grad == VALUE_NONE)
        return;
    for (int64_t i = 0; i < n; i++)
        taken[i] = eval_get(before, param)[i] - eval_get(after, param)[i];
    double whole = norm(eval_get(before, grad), NULL, n);
    double difference = norm(taken, eval_get(before, grad), n);
    CHECK_MSG(whole > 0 && difference <= m->bound * whole,
              "%s: the gradient of %s, of norm %g, differs by %.4f of that", m->name, name, whole,
              difference / whole);
}

static void check_gradients(const Model *m, const Built *built, const Graph *plain)
{
    const uint64_t seed = 5;
    Running r;
    if (!run_open(&r, built, 2))
        return;
    run_initialize(&r, seed);
    EvalState *before = eval_new(built->pool, plain), *after = eval_new(built->pool, plain);
    eval_from_run(before, &r, seed, 0);
    eval_run(before, false);
    run_step(&r, seed, 0);
    eval_from_run(after, &r, seed, 0);
    for (size_t i = 0; i < plain->order.len; i++)
        if (graph_node(plain, plain->order.data[i])->op == OP_param)
            check_gradient(m, before, after, graph_node(plain, plain->order.data[i])->out[0]);
    run_close(&r);
}

static int count_of(const Graph *g, DType type)
{
    int n = 0;
    for (size_t i = 0; i < g->order.len; i++)
        n += value_type(g, graph_node(g, g->order.data[i])->out[0])->dtype == type;
    return n;
}

static void check_model(const Model *m)
{
    Pool *pool = pool_new();
    Built built, plain;
    if (model_plan(pool, m->text, &(BuildOptions){.pipeline = "autodiff"}, &plain) &&
        model_build(pool, m->text, &(BuildOptions){0}, &built)) {
        CHECK(count_of(plain.graph, DTYPE_BF16) == 0 && count_of(built.graph, DTYPE_BF16) > 5);
        check_gradients(m, &built, plain.graph);
        codegen_unload(built.step);
    }
    pool_free(pool);
}

int main(void)
{
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        check_model(&models[i]);
    return test_result();
}
