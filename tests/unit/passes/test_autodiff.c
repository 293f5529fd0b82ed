/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The structure of the step that autodiff makes; what it computes is checked by
 * tests/property/test_train_step.c. */
#include "check.h"
#include "tests/support/graph_text.h"

#include "ir/eval.h"
#include "ir/verify.h"
#include "passes/pass.h"
#include "tests/support/fused.h"

#include <string.h>

static Graph *forward_of(Pool *pool, const char *train, const char *body)
{
    return graph_of(pool, "forward", pool_printf(pool, "%s%s", train, body));
}

#define SGD "  train {optim=sgd, lr=constant, momentum=0.9, accumulate=1}\n"
#define LINEAR                                                                                     \
    "  %x = input {role=\"batch.x\"} : f32[4,3]\n"                                                 \
    "  %l = input {role=\"batch.y\"} : i32[4]\n"                                                   \
    "  $fc.weight = param : f32[2,3]  loc 7:9 in fc\n"                                             \
    "  $fc.bias = param : f32[2]\n"                                                                \
    "  %fc = linear %x, $fc.weight, $fc.bias : f32[4,2]  loc 7:9 in fc\n"                          \
    "  %loss = cross_entropy %fc, %l : f32[]  loc 9:3\n"                                           \
    "  output loss = %loss\n"

/* The step, well formed, or NULL. */
static Graph *step_of(PassContext *ctx, Pool *pool, const char *train, const char *body)
{
    const char *message = NULL;
    *ctx = (PassContext){.graph = forward_of(pool, train, body), .pool = pool};
    if (!ctx->graph)
        return NULL;
    bool ok = pass_autodiff(ctx);
    CHECK_MSG(ok, "%s", ctx->error.message);
    bool good = ok && graph_verify(ctx->graph, &message);
    CHECK_MSG(good, "%s", message);
    if (good)
        CHECK(strcmp(ctx->graph->kind, "step") == 0);
    return good ? ctx->graph : NULL;
}

static void check_error(const char *train, const char *body, const char *code)
{
    Pool *pool = pool_new();
    PassContext ctx = {.graph = forward_of(pool, train, body), .pool = pool};
    const Graph *before = ctx.graph;
    CHECK_MSG(ctx.graph && !pass_autodiff(&ctx), "no error %s", code);
    CHECK_MSG(ctx.error.code && strcmp(ctx.error.code, code) == 0, "%s instead of %s",
              ctx.error.code, code);
    CHECK(ctx.error.message && ctx.error.help && ctx.graph == before);
    pool_free(pool);
}

static void test_errors(void)
{
    check_error("  train {optim=sgd, lr=constant, accumulate=1000000}\n", LINEAR, "E615");
    check_error("  train {optim=sgd, lr=constant, accumulate=2}\n",
                "  %x = input {role=\"batch.x\"} : f32[1,1,1,1,1,1,1,1]\n  $w = param : f32[1]\n"
                "  %y = mul %x, $w : f32[1,1,1,1,1,1,1,1]\n  %loss = sum %y : f32[]\n"
                "  output loss = %loss\n",
                "E615");
    check_error("", LINEAR, "E610");
    check_error(SGD, "  $w = param : f32[2]\n", "E611");
    check_error(SGD, "  $w = param : f32[2]\n  output loss = $w\n", "E612");
    check_error(SGD,
                "  %x = input : f32[2]\n  $w = param : f32[2]\n  %loss = sum %x : f32[]\n"
                "  output loss = %loss\n",
                "E614");
    check_error(SGD,
                "  $w = param : f32[2]\n  %c = stop_gradient $w : f32[2]\n"
                "  %loss = sum %c : f32[]\n  output loss = %loss\n",
                "E614");
}

#define ATTENTION(bias)                                                                            \
    "  %x = input {role=\"batch.x\"} : f32[2,4,3]\n"                                               \
    "  $q = param : f32[2,4,3]\n  $pad = param : f32[4]\n  %c = stop_gradient $pad : f32[4]\n"     \
    "  %o, %max, %sum = attention $q, %x, %x, " bias " : f32[2,4,3], f32[2,4], f32[2,4]\n"         \
    "  %loss = mean %o : f32[]\n  output loss = %loss\n"

/* One that is learned would silently stay as it is. */
static void test_attention_bias(void)
{
    PassContext ctx;
    Pool *pool = pool_new();
    const Graph *g = step_of(&ctx, pool, SGD, ATTENTION("%c"));
    CHECK(g && graph_find(g, "$d.q") != VALUE_NONE && graph_find(g, "$d.pad") == VALUE_NONE);
    pool_free(pool);
    check_error(SGD, ATTENTION("$pad"), "E617");
}

static void test_fused_is_refused(void)
{
    Pool *pool = pool_new();
    const Loc loc = {0};
    Graph *g = forward_of(pool, SGD, "  $w = param : f32[]\n"), *body = graph_new(pool, "body");
    ValueId w = graph_find(g, "$w");
    ValueId in = graph_add_source(body, OP_input, *value_type(g, w), NULL, "%in", loc);
    graph_add_output(body, "0", graph_add(body, OP_neg, &in, 1, NULL, "%out", loc));
    NodeId fused = graph_add_fused(g, body, &w, 1, "%loss", loc);
    graph_add_output(g, "loss", graph_node(g, fused)->out[0]);
    PassContext ctx = {.graph = g, .pool = pool};
    CHECK(!pass_autodiff(&ctx) && strcmp(ctx.error.code, "E613") == 0);
    pool_free(pool);
}

static const Node *maker(const Graph *g, const char *name)
{
    static const Node none = {.op = OP_COUNT};
    ValueId v = graph_find(g, name);
    CHECK_MSG(v != VALUE_NONE, "%s is missing", name);
    return v == VALUE_NONE ? &none : value_node(g, v);
}

/* Place in the order, -1 when missing. */
static int place(const Graph *g, const char *name)
{
    ValueId v = graph_find(g, name);
    for (size_t i = 0; v != VALUE_NONE && i < g->order.len; i++)
        if (g->order.data[i] == graph_value(g, v)->def)
            return (int)i;
    return -1;
}

static void test_names(void)
{
    Pool *pool = pool_new();
    PassContext ctx;
    Graph *g = step_of(&ctx, pool, SGD, LINEAR);
    CHECK(maker(g, "%d.fc")->op == OP_cross_entropy_grad);
    CHECK(maker(g, "%d.fc")->loc.line == 9);
    CHECK(maker(g, "$d.fc.weight")->op == OP_matmul);
    CHECK(maker(g, "$d.fc.weight")->loc.line == 7 && maker(g, "$d.fc.weight")->loc.column == 9);
    CHECK(strcmp(maker(g, "$d.fc.weight")->loc.path, "fc") == 0);
    CHECK(strcmp(maker(g, "$next.fc.weight")->loc.path, "fc") == 0);
    CHECK(maker(g, "$d.fc.bias")->op == OP_sum);
    CHECK(maker(g, "%d.loss")->op == OP_const);
    CHECK(graph_find(g, "%d.x") == VALUE_NONE); /* nobody needs it */
    CHECK(place(g, "%sumsq.fc.weight") == place(g, "$d.fc.weight") + 1);
    CHECK(graph_output(g, "loss") == graph_find(g, "%loss"));
    CHECK(graph_output(g, "grad_norm") != VALUE_NONE);
    const Node *state = maker(g, "$m.fc.weight");
    CHECK(state->op == OP_state && strcmp(node_string(state, ATTR_of, ""), "fc.weight") == 0);
    CHECK(strcmp(node_string(state, ATTR_role, ""), "momentum") == 0);
    CHECK(strcmp(node_string(state, ATTR_init, ""), "zeros") == 0);
    const Node *update = maker(g, "$next.fc.weight");
    CHECK(update->op == OP_sgd_step && update->n_in == 5);
    CHECK(graph_value(g, update->out[0])->writes == graph_find(g, "$fc.weight"));
    CHECK(graph_value(g, update->out[1])->writes == graph_find(g, "$m.fc.weight"));
    CHECK(strcmp(node_string(maker(g, "%lr"), ATTR_role, ""), "lr") == 0);
    CHECK(graph_find(g, "%step") == VALUE_NONE);
    CHECK(ctx.untrained == NULL);
    pool_free(pool);
}

/* Two parameters with one gradient, which is also that of their sum: views keep the names apart. */
static void test_shared_gradient(void)
{
    Pool *pool = pool_new();
    PassContext ctx = {0};
    Graph *g = step_of(&ctx, pool, SGD,
                       "  $a = param : f32[2]\n  $b = param : f32[2]\n"
                       "  $unused = param : f32[1]\n  $idle = param : f32[1]\n"
                       "  %y = add $a, $b : f32[2]\n  %z = tanh %y : f32[2]\n"
                       "  %loss = sum %z : f32[]\n  output loss = %loss\n");
    CHECK(maker(g, "%d.y")->op == OP_tanh_grad);
    CHECK(maker(g, "$d.a")->op == OP_reshape && maker(g, "$d.b")->op == OP_reshape);
    CHECK(ctx.untrained && strcmp(ctx.untrained, "$unused $idle") == 0);
    CHECK(graph_find(g, "$m.unused") == VALUE_NONE && graph_find(g, "$next.idle") == VALUE_NONE);
    pool_free(pool);
}

static void test_optimizers(void)
{
    Pool *pool = pool_new();
    PassContext ctx = {0};
    Graph *g = step_of(&ctx, pool, "  train {optim=sgd, lr=constant, accumulate=1}\n", LINEAR);
    CHECK(maker(g, "$next.fc.bias")->n_in == 4 && graph_find(g, "$m.fc.bias") == VALUE_NONE);
    CHECK(maker(g, "%clip")->op == OP_const);
    g = step_of(&ctx, pool,
                "  train {optim=adamw, lr=constant, weight_decay=0.1, "
                "decay_matrices_only=true, beta1=0.9, beta2=0.95, eps=1e-08, clip=2, "
                "accumulate=1}\n",
                LINEAR);
    const Node *weight = maker(g, "$next.fc.weight"), *bias = maker(g, "$next.fc.bias");
    CHECK(weight->op == OP_adam_step && node_flag(weight, ATTR_decoupled));
    CHECK(node_attr(weight, ATTR_weight_decay) && !node_attr(bias, ATTR_weight_decay));
    CHECK(graph_value(g, bias->out[1])->writes == graph_find(g, "$adam_m.fc.bias"));
    CHECK(graph_value(g, bias->out[2])->writes == graph_find(g, "$adam_v.fc.bias"));
    CHECK(maker(g, "%clip")->op == OP_clip_scale);
    CHECK(maker(g, "%clip")->in[0] == graph_find(g, "%grad_norm"));
    CHECK(value_type(g, graph_find(g, "%step"))->dtype == DTYPE_I32);
    pool_free(pool);
}

/* One weight under a batch of matrices: one product over all their rows, not one a matrix and a
 * sum. */
static void test_flat_weight(void)
{
    Pool *pool = pool_new();
    PassContext ctx = {0};
    Graph *g = step_of(&ctx, pool, SGD,
                       "  %x = input {role=\"batch.x\"} : f32[4,3,2]\n  $w = param : f32[2,5]\n"
                       "  %h = matmul %x, $w : f32[4,3,5]\n  %loss = mean %h : f32[]\n"
                       "  output loss = %loss\n");
    CHECK(maker(g, "$d.w")->op == OP_matmul);
    CHECK(value_type(g, maker(g, "$d.w")->in[0])->rank == 2);
    pool_free(pool);
}

#define RANK8 "f32[1,1,1,1,1,1,1,1]"

/* A batch with as many dims as there may be leaves no room for micro-batches, but needs none. */
static void test_rank8(void)
{
    Pool *pool = pool_new();
    PassContext ctx = {0};
    CHECK(step_of(&ctx, pool, SGD,
                  "  %x = input {role=\"batch.x\"} : " RANK8 "\n  $w = param : f32[1]\n"
                  "  %y = mul %x, $w : " RANK8
                  "\n  %loss = sum %y : f32[]\n  output loss = %loss\n"));
    pool_free(pool);
}

/* Batch norm by its own statistics is differentiated as one operation. */
static void test_batch_norm(void)
{
    Pool *pool = pool_new();
    PassContext ctx = {0};
    Graph *g = step_of(&ctx, pool, SGD,
                       "  $x = param : f32[4,2]\n  $g = param : f32[2]\n  $b = param : f32[2]\n"
                       "  %m, %v = bn_stats $x : f32[2], f32[2]\n"
                       "  %y = bn_apply $x, %m, %v, $g, $b : f32[4,2]\n"
                       "  %z = tanh %y : f32[4,2]\n  %loss = sum %z : f32[]\n"
                       "  output loss = %loss\n");
    const Node *dx = maker(g, "$d.x"), *sums = maker(g, "$d.g");
    CHECK(dx->op == OP_bn_grad_x && sums->op == OP_bn_grad_sums);
    CHECK(dx->op == OP_bn_grad_x && dx->in[5] == sums->out[0] && dx->in[6] == sums->out[1]);
    CHECK(maker(g, "$d.b") == sums);
    pool_free(pool);
}

#define MICRO3 "  train {optim=sgd, lr=constant, accumulate=3}\n"

static void test_accumulate(void)
{
    Pool *pool = pool_new();
    PassContext ctx = {0};
    Graph *g =
        step_of(&ctx, pool, MICRO3,
                "  %two = full {shape=[2], value=2} : f32[2]\n" /* sources need not come first */
                "  %x = input {role=\"batch.x\"} : f32[4,2]\n"
                "  %r = input {role=\"rng\"} : i32[4]\n  $w = param : f32[2,2]\n"
                "  $seen = buffer : f32[2]\n  %h = linear %x, $w : f32[4,2]\n"
                "  %m, %v = bn_stats %h : f32[2], f32[2]\n"
                "  %run = bn_running $seen, %m : f32[2] -> $seen\n"
                "  %s = mul %h, %two : f32[4,2]\n"
                "  %d = dropout %s, %r {p=0.5, key=7} : f32[4,2] @keep\n"
                "  %loss = mean %d : f32[]\n  output loss = %loss\n  output h = %h\n");
    CHECK(value_type(g, graph_find(g, "%x"))->rank == 3);
    CHECK(value_type(g, graph_find(g, "%x"))->dim[0] == 3);
    CHECK(value_type(g, graph_find(g, "%r"))->rank == 1); /* not part of the batch */
    CHECK(value_type(g, graph_output(g, "loss"))->rank == 0);
    CHECK(value_type(g, graph_output(g, "h"))->rank == 3);
    const Node *first = maker(g, "%mb0.d"), *last = maker(g, "%mb2.d");
    CHECK(first->hint == REMAT_KEEP && last->hint == REMAT_KEEP);
    CHECK(node_int(first, ATTR_key, 0) == 7);
    CHECK(node_int(first, ATTR_key, 0) != node_int(maker(g, "%mb1.d"), ATTR_key, 0));
    CHECK(node_int(maker(g, "%mb1.d"), ATTR_key, 0) != node_int(last, ATTR_key, 0));
    CHECK(node_int(maker(g, "%d.mb1.s"), ATTR_key, 0) == node_int(maker(g, "%mb1.d"), ATTR_key, 0));
    CHECK(graph_value(g, graph_find(g, "%mb1.run"))->writes == VALUE_NONE);
    CHECK(graph_value(g, graph_find(g, "%mb2.run"))->writes == graph_find(g, "$seen"));
    CHECK(maker(g, "%mb2.run")->in[0] == graph_find(g, "%mb1.run"));
    CHECK(maker(g, "$d.w")->op == OP_add);
    pool_free(pool);
}

/* d loss / d $w at a point where the gradient is a convention: PyTorch's. */
static void check_kink(const char *body, const double *w, const double *expected, int n)
{
    Pool *pool = pool_new();
    PassContext ctx = {0};
    const char *text =
        pool_printf(pool, "%s  %%loss = sum %%y : f32[]\n  output loss = %%loss\n", body);
    Graph *g = step_of(&ctx, pool, "  train {optim=sgd, lr=constant, accumulate=1}\n", text);
    EvalState *s = eval_new(pool, g);
    const double lr = 0;
    eval_set(s, graph_find(g, "%lr"), &lr);
    eval_set(s, graph_find(g, "$w"), w);
    eval_run(s, false);
    for (int i = 0; i < n; i++)
        CHECK_MSG(eval_get(s, graph_find(g, "$d.w"))[i] == expected[i], "%s: [%d] is %g", body, i,
                  eval_get(s, graph_find(g, "$d.w"))[i]);
    pool_free(pool);
}
#define KINK(body, w, ...)                                                                         \
    check_kink(body, w, (const double[]){__VA_ARGS__},                                             \
               (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)))
#define D(...) ((const double[]){__VA_ARGS__})
#define W3     "  $w = param : f32[3]\n  %c = const {value=1} : f32[]\n"

static void test_kinks(void)
{
    KINK(W3 "  %y = maximum $w, %c : f32[3]\n", D(0, 1, 2), 0, 0.5, 1);
    KINK(W3 "  %y = minimum $w, %c : f32[3]\n", D(0, 1, 2), 1, 0.5, 0);
    KINK(W3 "  %y = relu $w : f32[3]\n", D(-1, 0, 1), 0, 0, 1);
    KINK(W3 "  %y = abs $w : f32[3]\n", D(-1, 0, 1), -1, 0, 1);
    KINK(W3 "  %y = reduce_max $w : f32[]\n", D(5, 5, 1), 0.5, 0.5, 0);
    KINK(W3 "  %y = pow $w, %c : f32[3]\n", D(-1, 0, 1), 1, 1, 1);
    KINK(W3 "  %t = const {value=2} : f32[]\n  %y = pow $w, %t : f32[3]\n", D(-1, 0, 3), -2, 0, 6);
    KINK("  $w = param : f32[3]\n  %z = const {value=0} : f32[3]\n  %y = pow $w, %z : f32[3]\n",
         D(-1, 0, 1), 0, 0, 0);
    KINK("  $w = param : f32[3]\n  %z = const {value=0} : f32[3]\n  %y = pow %z, $w : f32[3]\n",
         D(2, 1, 3), 0, 0, 0);
    KINK("  $w = param : f32[1,1,2,2]\n  %y = maxpool $w {kernel=[2,2]} : f32[1,1,1,1]\n",
         D(1, 3, 3, 0), 0, 1, 0, 0);
}

/* What is frozen has no gradient and no state, and nothing is computed that only it would need. */
static void check_frozen(void)
{
    Pool *pool = pool_new();
    PassContext ctx;
    Graph *g = step_of(&ctx, pool,
                       "  train {optim=sgd, lr=constant, momentum=0.9, groups=["
                       "{pattern=\"fc.*\", frozen=true}, "
                       "{pattern=\"*.bias\", own_lr=true, optim=adam, lr=constant, base=0.1}]}\n",
                       "  %x = input {role=\"batch.x\"} : f32[4,3]\n"
                       "  %l = input {role=\"batch.y\"} : i32[4]\n"
                       "  $fc.weight = param : f32[5,3]\n"
                       "  $fc.bias = param : f32[5]\n"
                       "  $out.weight = param : f32[2,5]\n"
                       "  $out.bias = param : f32[2]\n"
                       "  %fc = linear %x, $fc.weight, $fc.bias : f32[4,5]\n"
                       "  %h = relu %fc : f32[4,5]\n"
                       "  %out = linear %h, $out.weight, $out.bias : f32[4,2]\n"
                       "  %loss = cross_entropy %out, %l : f32[]\n"
                       "  output loss = %loss\n");
    static const char *const gone[] = {"$d.fc.weight",  "$d.fc.bias", "$m.fc.weight",
                                       "$next.fc.bias", "%d.h",       "%d.fc",
                                       "$m.out.bias"};
    static const char *const there[] = {"$fc.weight",     "$d.out.weight",    "$m.out.weight",
                                        "$next.out.bias", "$adam_v.out.bias", "%lr.1",
                                        "%step"};
    for (size_t i = 0; g && i < sizeof gone / sizeof *gone; i++)
        CHECK_MSG(graph_find(g, gone[i]) == VALUE_NONE, "%s", gone[i]);
    for (size_t i = 0; g && i < sizeof there / sizeof *there; i++)
        CHECK_MSG(graph_find(g, there[i]) != VALUE_NONE, "%s", there[i]);
    pool_free(pool);
}

int main(void)
{
    test_errors();
    test_fused_is_refused();
    test_attention_bias();
    test_names();
    test_shared_gradient();
    test_optimizers();
    test_accumulate();
    test_flat_weight();
    test_rank8();
    test_batch_norm();
    test_kinks();
    check_frozen();
    return test_result();
}
