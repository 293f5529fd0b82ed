/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Batch normalization in weights computes what it computes behind them, by the evaluator in double;
 * what cannot be folded is left alone. */
#include "check.h"
#include "ir/eval.h"
#include "passes/pass.h"
#include "tests/support/elaborate_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Element i of a tensor: no two alike, variances above 0. */
static double element(const char *name, int64_t i)
{
    double x = sin((double)hash_bytes(name, strlen(name), 3) * 1e-15 + 1.7 * (double)i);
    return strstr(name, "running_var") ? 0.5 + x * x : x;
}

static float *elements(Pool *pool, const Graph *before, const char *name)
{
    char sigil[100];
    snprintf(sigil, sizeof sigil, "$%s", name);
    ValueId v = graph_find(before, sigil);
    CHECK_MSG(v != VALUE_NONE, "%s", name);
    int64_t n = type_elements(value_type(before, v));
    float *out = POOL_ARRAY(pool, (size_t)n, float);
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)element(name, i);
    return out;
}

static const float *folded(Pool *pool, const Graph *before, const PassContext *ctx,
                           const char *name, const Type *t)
{
    for (size_t i = 0; i < ctx->folded.len; i++) {
        const FoldedNorm *n = &ctx->folded.data[i];
        bool weight = !strcmp(name, n->folded_weight);
        if (!weight && strcmp(name, n->folded_bias) != 0)
            continue;
        NormTensors in = {
            elements(pool, before, n->weight), n->bias ? elements(pool, before, n->bias) : NULL,
            elements(pool, before, n->mean),   elements(pool, before, n->variance),
            elements(pool, before, n->scale),  elements(pool, before, n->shift)};
        float *out = POOL_ARRAY(pool, (size_t)type_elements(t), float);
        if (weight)
            folded_norm_weight(n, &in, t, out);
        else
            folded_norm_bias(n, &in, type_elements(t), out);
        return out;
    }
    return elements(pool, before, name);
}

/* The first output of a graph; ctx: what was folded, or NULL. */
static const double *evaluated(Pool *pool, const Graph *before, const Graph *g,
                               const PassContext *ctx)
{
    EvalState *s = eval_new(pool, g);
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (n->op != OP_input && !node_is_persistent(n))
            continue;
        const Type *t = value_type(g, n->out[0]);
        const char *name = graph_value(g, n->out[0])->name + 1;
        double *data = POOL_ARRAY(pool, (size_t)type_elements(t), double);
        const float *from =
            ctx && node_is_persistent(n) ? folded(pool, before, ctx, name, t) : NULL;
        for (int64_t k = 0; k < type_elements(t); k++)
            data[k] = from ? (double)from[k] : (double)(float)element(name, k);
        eval_set(s, n->out[0], data);
    }
    eval_run(s, false);
    return eval_get(s, g->outputs.data[0].value);
}

static int count(const Graph *g, OpKind op)
{
    int n = 0;
    for (size_t i = 0; i < g->order.len; i++)
        n += graph_node(g, g->order.data[i])->op == op;
    return n;
}

/* A model of which `norms` normalizations stay. */
static void check(const char *model, int folds, int norms)
{
    Elaborated r = elaborate_text(model, FRONTEND_INFER);
    CHECK_MSG(r.graph, "%s", r.errors);
    if (!r.graph)
        return;
    PassContext ctx = {.graph = graph_copy(r.pool, r.graph), .pool = r.pool};
    CHECK(passes_run(&ctx, "fold_norms", NULL, NULL));
    CHECK_MSG((int)ctx.folded.len == folds && count(ctx.graph, OP_bn_apply) == norms,
              "%s: %zu folded", model, ctx.folded.len);
    CHECK(norms > 0 || count(ctx.graph, OP_buffer) == 0);
    const double *a = evaluated(r.pool, r.graph, r.graph, NULL);
    const double *b = evaluated(r.pool, r.graph, ctx.graph, &ctx);
    double most = 0, apart = 0;
    for (int64_t i = 0; i < type_elements(value_type(r.graph, r.graph->outputs.data[0].value));
         i++) {
        most = fmax(most, fabs(a[i]));
        apart = fmax(apart, fabs(a[i] - b[i]));
    }
    CHECK_MSG(most > 0.1 && apart < 2e-6 * most, "%s: %g apart of %g", model, apart, most);
    elaborated_free(&r);
}

int main(void)
{
    check(
        "model m(x: f32[2, 3, 8, 8]) { return x |> c: conv(6, 3, pad = 1, bias = false) |> b: bn() "
        "|> relu() |> d: conv(4, 3, stride = 2, groups = 2) |> e: bn(eps = 0.1) }",
        2, 0);
    check("model m(x: f32[2, 3, 5, 5]) { return x |> c: deconv(6, 3, stride = 2) |> b: bn() }", 1,
          0);
    check(
        "model m(x: f32[5, 7]) { return x |> c: linear(6) |> b: bn() |> d: linear(3, bias = false, "
        "layout = in_out) |> e: bn() }",
        2, 0);
    /* Weights that are used twice: each use has its own. */
    check("model m(x: f32[2, 3, 4, 4]) {\n  y = x |> shared c: conv(3, 3, pad = 1) |> b1: bn()\n"
          "  return y |> shared c: conv(3, 3, pad = 1) |> b2: bn() }",
          2, 0);
    /* Read elsewhere, too; steps and not channels; groups of a deconv; before the layer; twice. */
    check("model m(x: f32[2, 3, 4, 4]) {\n  y = x |> c: conv(3, 3, pad = 1)\n"
          "  return (y |> b: bn()) + y }",
          0, 1);
    check("model m(x: f32[2, 3, 4]) { return x |> c: linear(5) |> b: bn() }", 0, 1);
    check("model m(x: f32[2, 4, 4, 4]) { return x |> c: deconv(6, 3, groups = 2) |> b: bn() }", 0,
          1);
    check("model m(x: f32[2, 3, 4, 4]) { return x |> b: bn() |> c: conv(5, 3) }", 0, 1);
    check("model m(x: f32[2, 3, 4, 4]) { return x |> c: conv(5, 3) |> b: bn() |> d: bn() }", 1, 1);
    return test_result();
}
