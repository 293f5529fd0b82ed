/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the elaborator builds: names, labels, seq, shared, initial values, batch norm and dropout in
 * the three modes, hints, sections. */
#include "check.h"
#include "ir/summary.h"
#include "tests/support/elaborate_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS "option N = 4\n"
#define TRAIN(model, rest)                                                                         \
    "train {\n  batch = synthetic(image = f32[N, 3, 8, 8], label = i32[N])\n"                      \
    "  loss = cross_entropy(" model "(batch.image), batch.label)\n" rest "}\n"
#define PLAIN "  optim = sgd(lr = 0.1)\n  steps = 10\n"

static void expect_param(const Elaborated *r, const char *name, const char *type, const char *init)
{
    const Node *n = find_node(r, name);
    if (!n)
        return;
    CHECK_MSG(strcmp(type_text(r->pool, value_type(r->graph, n->out[0])), type) == 0, "%s", name);
    CHECK_MSG(!init || strcmp(node_string(n, ATTR_init, ""), init) == 0, "%s: %s", name,
              node_string(n, ATTR_init, ""));
}

/* torch: 1/sqrt(fan_in) bounds for linear and conv, normal(1) for embedding, ones and zeros for
 * norms */
static void check_initial_values(void)
{
    Elaborated r = elaborate_text(
        OPTIONS "model m(x: f32[N, 16, 8, 8], ids: i32[N]) {\n"
                "  x = x |> c: conv(4, 3, groups = 4) |> n: bn() |> flatten() |> l: linear(5)\n"
                "  e = ids |> e: embedding(10, 5)\n"
                "  with init(weight = normal(0.5), bias = zeros) {\n"
                "    x = x |> l2: linear(6) |> n2: layernorm() |> l3: linear(3, init = "
                "he_normal(fan = out))\n"
                "    with init(bias = uniform(-1, 1)) { x = x |> l4: linear(8) }\n"
                "  }\n"
                "  param scale: f32[3, 8] = xavier_uniform()\n"
                "  buffer count: f32[8] = 2\n"
                "  return x |> l5: linear(3, layout = in_out), e + 0 * sum(scale), count\n"
                "}\n",
        FRONTEND_INFER);
    expect_param(&r, "$c.weight", "f32[4,4,3,3]",
                 "uniform(-0.16666666666666666,0.16666666666666666)"); /* 1/sqrt(36) */
    expect_param(&r, "$c.bias", "f32[4]", "uniform(-0.16666666666666666,0.16666666666666666)");
    expect_param(&r, "$n.weight", "f32[4]", "ones");
    expect_param(&r, "$n.running_mean", "f32[4]", "zeros");
    expect_param(&r, "$l.weight", "f32[5,144]", NULL);
    expect_param(&r, "$e.weight", "f32[10,5]", "normal(1)");
    expect_param(&r, "$l2.weight", "f32[6,5]", "normal(0.5)");
    expect_param(&r, "$l2.bias", "f32[6]", "zeros");
    expect_param(&r, "$n2.weight", "f32[6]", "ones");
    expect_param(&r, "$l3.weight", "f32[3,6]", NULL);
    expect_param(&r, "$l4.bias", "f32[8]", "uniform(-1,1)");
    expect_param(&r, "$l5.weight", "f32[8,3]", NULL);
    expect_param(&r, "$scale", "f32[3,8]", NULL);
    expect_param(&r, "$count", "f32[8]", "uniform(2,2)");
    const Node *l3 = find_node(&r, "$l3.weight"), *scale = find_node(&r, "$scale");
    if (l3 && scale) {
        double he = strtod(node_string(l3, ATTR_init, "") + 7, NULL);        /* sqrt(2/fan_out) */
        double xavier = strtod(node_string(scale, ATTR_init, "") + 8, NULL); /* -sqrt(6/(in+out)) */
        CHECK_MSG(fabs(he - sqrt(2.0 / 3)) < 1e-12, "%s", node_string(l3, ATTR_init, ""));
        CHECK_MSG(fabs(xavier + sqrt(6.0 / 11)) < 1e-12, "%s", node_string(scale, ATTR_init, ""));
    }
    elaborated_free(&r);
}

/* torch.nn.Sequential counts every stage; a label takes the place of the number. */
static void check_seq_names(void)
{
    Elaborated r = elaborate_text(
        OPTIONS "block Inner(x) { return x |> fc: linear(4) }\n"
                "model m(x: f32[N, 4]) {\n"
                "  x = x |> body: seq {\n"
                "    linear(4); relu(); linear(4) |> relu()\n"
                "    for i in 0..2 { Inner() }\n"
                "    named: linear(4)\n"
                "    if N > 100 { tanh() }\n"
                "    seq { linear(2); linear(3) }\n"
                "  }\n"
                "  h = seq { linear(5) }\n"
                "  return x |> h[0].a: linear(4) |> \"x{N}\"[\"y\"]: Inner() |> last: h()\n"
                "}\n",
        FRONTEND_INFER);
    static const char *const names[] = {
        "$body.0.weight",     "$body.2.weight",   "$body.4.fc.weight", "$body.5.fc.weight",
        "$body.named.weight", "$body.7.0.weight", "$body.7.1.bias",    "$h.0.a.weight",
        "$x4.y.fc.bias",      "$last.0.weight",   "%body.1",           "%body.3",
        "%body.7.1"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        find_node(&r, names[i]);
    elaborated_free(&r);
}

/* f(x) has the names of x |> f(): those of x are no part of f. */
static void check_argument_names(void)
{
    Elaborated r = elaborate_text(
        "block Cell(x) { return x |> a: linear(4) }\n"
        "model m(x: f32[2, 4]) {\n"
        "  y = (outer: Cell(inner: Cell(x))) + (last: linear(first: linear(x, 4), 4))\n"
        "  h = shared net: Cell(x)\n"
        "  return y + (shared net: Cell(relu(shared net: Cell(h))))\n"
        "}\n",
        FRONTEND_INFER);
    static const char *const names[] = {"$outer.a.weight", "$inner.a.weight", "$last.weight",
                                        "$first.weight", "$net.a.weight"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        find_node(&r, names[i]);
    CHECK_MSG(r.graph && graph_summary(r.pool, r.graph).params == 5 * 20, "%s", r.errors);
    elaborated_free(&r);
}

static void check_shared(void)
{
    Elaborated r =
        elaborate_text(OPTIONS "block Cell(x, h) { return tanh((x |> ih: linear(4)) + (h |> hh: "
                               "linear(4, bias = false))) }\n"
                               "model m(x: f32[N, 3, 4]) {\n"
                               "  h = zeros([N, 4])\n"
                               "  for t in 0..3 { h = shared cell: Cell(x[.., t], h) }\n"
                               "  return einsum(\"n i, o i -> n o\", h, $cell.hh.weight)\n"
                               "}\n",
                       FRONTEND_INFER);
    Summary s = {0};
    if (r.graph)
        s = graph_summary(r.pool, r.graph);
    CHECK_MSG(s.params == 16 + 4 + 16 && count_ops(&r, OP_linear) == 7, "%s", r.errors);
    elaborated_free(&r);
    /* the same label inside one use of a shared block is still a mistake; another shape too */
    r = elaborate_text(
        "block Cell(x) { return x |> a: linear(4) |> a: linear(4) }\n"
        "model m(x: f32[2, 4]) { return x |> shared c: Cell() |> shared c: Cell() }\n",
        FRONTEND_INFER);
    CHECK_MSG(strstr(r.errors, "E202"), "%s", r.errors);
    elaborated_free(&r);
    r = elaborate_text(
        "model m(x: f32[2, 4]) { return x |> shared c: linear(5) |> shared c: linear(5) }\n",
        FRONTEND_INFER);
    CHECK_MSG(strstr(r.errors, "E101") && strstr(r.errors, "f32[5,5]"), "%s", r.errors);
    elaborated_free(&r);
}

static const char bn_dropout[] = OPTIONS
    "model m(x: f32[N, 3, 8, 8]) {\n"
    "  x = x |> bn1: bn(momentum = 0.2) |> dropout(0.25) |> dropout(0.25)\n"
    "  return x |> flatten() |> fc: linear(10)\n"
    "}\n" TRAIN("m", PLAIN "  metrics = [accuracy(m2, batch.label)]\n  m2 = zeros([N, 10])\n");

static void check_modes(void)
{
    char *text = strdup(bn_dropout), *metrics = strstr(text, "  metrics");
    *metrics = '}', metrics[1] = '\n', metrics[2] = 0;
    Elaborated r = elaborate_text(text, FRONTEND_TRAIN);
    const Node *apply = find_node(&r, "%bn1"), *var = find_node(&r, "%bn1.running_var");
    if (apply && var) {
        ValueId buffer = graph_find(r.graph, "$bn1.running_var"),
                stats = graph_find(r.graph, "%bn1.stats");
        CHECK(apply->in[1] == stats);
        CHECK(graph_value(r.graph, var->out[0])->writes == buffer && var->in[0] == buffer);
        CHECK(node_float(var, ATTR_momentum, 0) == 0.2);
        CHECK(node_float(var, ATTR_scale, 0) == 256.0 / 255.0);
        CHECK(node_float(find_node(&r, "%bn1.running_mean"), ATTR_scale, 0) == 1.0);
    }
    const Node *a = find_node(&r, "%dropout.0"), *b = find_node(&r, "%dropout.1"),
               *rng = find_node(&r, "%rng");
    if (a && b && rng) {
        CHECK(node_int(a, ATTR_key, 0) != node_int(b, ATTR_key, 0) &&
              node_int(a, ATTR_key, -1) >= 0);
        CHECK(strcmp(node_string(rng, ATTR_role, ""), "rng") == 0 && a->in[1] == b->in[1]);
    }
    elaborated_free(&r);
    r = elaborate_text(text, FRONTEND_EVAL);
    apply = find_node(&r, "%bn1");
    CHECK(apply && apply->in[1] == graph_find(r.graph, "$bn1.running_mean"));
    CHECK(count_ops(&r, OP_dropout) == 0 && count_ops(&r, OP_bn_running) == 0 &&
          count_ops(&r, OP_accuracy) == 1);
    elaborated_free(&r);
    free(text);
}

/* A shared batch norm updates its statistics once for each use, one after another; a label of the
 * whole model is part of the names in every mode. */
static void check_shared_bn(void)
{
    static const char text[] =
        OPTIONS "model m(x: f32[N, 3, 8, 8]) {\n"
                "  for i in 0..2 { x = x |> shared n: bn() |> relu() }\n"
                "  return x |> flatten() |> fc: linear(10)\n}\n" TRAIN("net: m", PLAIN);
    Elaborated r = elaborate_text(text, FRONTEND_TRAIN);
    const Node *last = find_node(&r, "%net.n.running_mean");
    if (last) { /* 0.9 * (0.9 * old + 0.1 * first) + 0.1 * second */
        CHECK(graph_value(r.graph, last->out[0])->writes ==
              graph_find(r.graph, "$net.n.running_mean"));
        CHECK(value_node(r.graph, last->in[0])->op == OP_add);
        CHECK(last->in[1] == graph_find(r.graph, "%net.n.stats.1"));
        CHECK(count_ops(&r, OP_bn_running) == 2);
    }
    elaborated_free(&r);
    r = elaborate_text(text, FRONTEND_INFER);
    find_node(&r, "$net.fc.weight");
    elaborated_free(&r);
}

/* The key of each node of an operation, in order; how many. */
static int keys_of(const Elaborated *r, OpKind op, int64_t *key, int most)
{
    int n = 0;
    for (size_t k = 0; r->graph && k < r->graph->nodes.len && n < most; k++)
        if (r->graph->nodes.data[k].op == op)
            key[n++] = node_int(&r->graph->nodes.data[k], ATTR_key, -1);
    return n;
}

/* An earlier dropout elsewhere must not change another's numbers. */
static void check_dropout_keys(void)
{
    static const char *const text[] = {
        "block B(x) { return dropout(x, 0.5) }\nmodel m(x: f32[4]) { return x |> b: B() }\n",
        "block B(x) { return dropout(x, 0.5) }\nmodel m(x: f32[4]) { return x |> dropout(0.1) |> "
        "a: B() |> b: B() }\n"};
    int64_t key[2] = {0};
    for (int i = 0; i < 2; i++) {
        Elaborated r = elaborate_text(text[i], FRONTEND_TRAIN);
        int64_t all[4];
        int n = keys_of(&r, OP_dropout, all, 4);
        key[i] = n ? all[n - 1] : 0; /* the last is b's */
        elaborated_free(&r);
    }
    CHECK(key[0] != 0 && key[0] == key[1]);
}

/* Tensors of random numbers: a stream for each call, which is the same in an evaluation; those of
 * the train section are apart from the model's. */
static void check_random(void)
{
    static const char text[] = OPTIONS
        "block Noise(x) { return x + randn(x.shape) }\n"
        "model m(x: f32[N, 3, 8, 8]) {\n"
        "  x = x * rand(x.shape) |> n: Noise() |> Noise()\n"
        "  return x * bernoulli(x) |> flatten() |> fc: linear(10)\n}\n"
        "train {\n  batch = synthetic(image = f32[N, 3, 8, 8], label = i32[N])\n"
        "  k = randint([N], -3, 4)\n"
        "  loss = cross_entropy(m(batch.image * mean(to_f32(k))), batch.label)\n" PLAIN "}\n";
    int64_t key[2][8];
    for (int mode = 0; mode < 2; mode++) {
        Elaborated r = elaborate_text(text, mode ? FRONTEND_EVAL : FRONTEND_TRAIN);
        CHECK_MSG(keys_of(&r, OP_random, key[mode], 8) == 5, "%s", r.errors);
        const Node *k = find_node(&r, "%random.0");
        CHECK(k && node_int(k, ATTR_below, 0) == 7 &&
              value_node(r.graph, k->in[0])->op == OP_input);
        elaborated_free(&r);
    }
    CHECK(memcmp(key[0], key[1], 5 * sizeof **key) == 0);
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < i; k++)
            CHECK_MSG(key[0][i] != key[0][k], "streams %d and %d are one", k, i);
    Elaborated r = elaborate_text("model m(x: f32[4, 3, 8, 8]) { return x + rand(x.shape) }\n",
                                  FRONTEND_INFER);
    CHECK(keys_of(&r, OP_random, key[1], 8) == 1 && key[1][0] == key[0][1]);
    elaborated_free(&r);
    r = elaborate_text("import \"std/random\"\n"
                       "model m(x: f32[4, 3, 2]) { return drop_path(x, 0.5) }\n",
                       FRONTEND_INFER);
    const Node *product = find_node(&r, "%mul.0"); /* which pass fold takes away */
    CHECK(product && value_node(r.graph, product->in[1])->op == OP_full &&
          !count_ops(&r, OP_dropout));
    elaborated_free(&r);
}

static void check_hints(void)
{
    Elaborated r =
        elaborate_text("block B(x) { return x |> exp() |> tanh() }\nmodel m(x: f32[4]) {\n"
                       "  @keep\n  a = x |> relu() |> B()\n"
                       "  return a |> @recompute sigmoid() |> log()\n}\n",
                       FRONTEND_TRAIN);
    static const struct {
        const char *name;
        RematHint hint;
    } want[] = {{"%relu.0", REMAT_KEEP},
                {"%exp.0", REMAT_KEEP},
                {"%tanh.0", REMAT_KEEP},
                {"%sigmoid.0", REMAT_RECOMPUTE},
                {"%log.0", REMAT_AUTO}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        const Node *n = find_node(&r, want[i].name);
        CHECK_MSG(n && n->hint == want[i].hint, "%s", want[i].name);
    }
    elaborated_free(&r);
}

static void check_train_section(void)
{
    Elaborated r = elaborate_text(
        OPTIONS
        "option B = 5\n"
        "model m(x: f32[N, 3, 8, 8]) { return x |> flatten() |> fc: linear(10) }\n"
        "train {\n"
        "  batch = synthetic(image = f32[N, 3, 8, 8], label = i32[N])\n"
        "  logits = m(batch.image)\n"
        "  top1 = accuracy(logits, batch.label)\n"
        "  loss = cross_entropy(logits, batch.label, label_smoothing = 0.1)\n"
        "  metrics = [top1, accuracy(logits, batch.label)]\n"
        "  optim = sgd(linear(0.4, warmup = 2, min = 0.1), momentum = 0.9, nesterov = true, "
        "weight_decay = 1e-4, clip = 2)\n"
        "  epochs = 2.5\n  held_out = 100\n  eval_every = 7\n  accumulate = 3\n  seed = 11\n"
        "}\n"
        "remat { budget = 1.5MiB; solver = kusumoto_approx; objective = memory }\n",
        FRONTEND_TRAIN);
    if (r.graph) {
        const TrainSpec *t = &r.graph->train;
        const UpdateRule *u = &t->rule;
        CHECK(u->optim == OPTIM_SGD && u->momentum == 0.9 && u->nesterov &&
              u->weight_decay == 1e-4 && u->clip == 2);
        CHECK(u->lr.kind == LR_LINEAR && u->lr.base == 0.4 && u->lr.warmup == 2 &&
              u->lr.min == 0.1 && u->lr.in_epochs);
        CHECK(t->epochs == 2.5 && t->steps == 0 && t->held_out == 100 && !t->held_out_is_part);
        CHECK(t->eval_every == 7 && t->accumulate == 3 && t->seed == 11 && t->data_batch == 4);
        CHECK(strcmp(t->budget_text, "1.5MiB") == 0 && strcmp(t->solver, "kusumoto_approx") == 0 &&
              strcmp(t->objective, "memory") == 0);
        CHECK(graph_output(r.graph, "top1") != VALUE_NONE &&
              graph_output(r.graph, "accuracy") != VALUE_NONE);
        CHECK(strcmp(r.graph->options, "N=4 B=5") == 0 && strcmp(r.graph->name, "m") == 0 &&
              r.graph->source_hash != 0);
        const Node *image = find_node(&r, "%batch.image");
        CHECK(image && image->op == OP_input &&
              strcmp(node_string(image, ATTR_role, ""), "batch.image") == 0);
    }
    elaborated_free(&r);
}

/* The functional form of `linear`: parameters under names of one's own, and tied ones. */
static void check_affine(void)
{
    Elaborated r = elaborate_text("model m(x: f32[2, 3, 4], ids: i32[2, 3]) {\n"
                                  "  param weight_ih_l0: f32[8, 4]\n"
                                  "  param bias_ih_l0: f32[8] = uniform(-0.1, 0.1)\n"
                                  "  e = ids |> wte: embedding(7, 8)\n"
                                  "  h = affine(x, weight_ih_l0, bias_ih_l0) + e\n"
                                  "  return affine(h, $wte.weight)\n}\n",
                                  FRONTEND_INFER);
    if (r.graph) {
        Summary s = graph_summary(r.pool, r.graph);
        CHECK(s.params == 8 * 4 + 8 + 7 * 8 && count_ops(&r, OP_linear) == 2);
        CHECK(s.macs == 6 * 4 * 8 + 6 * 8 * 7);
        CHECK(strcmp(type_text(r.pool, &s.output), "f32[2,3,7]") == 0);
    }
    CHECK_MSG(r.graph, "%s", r.errors);
    find_node(&r, "$weight_ih_l0");
    elaborated_free(&r);
}

static void check_inverse_sqrt(void)
{
    Elaborated r =
        elaborate_text("model m(x: f32[2, 4]) { return x |> fc: linear(3) }\n"
                       "train {\n"
                       "  batch = synthetic(x = f32[2, 4], label = i32[2])\n"
                       "  loss  = cross_entropy(m(batch.x), batch.label)\n"
                       "  optim = adam(lr = inverse_sqrt(2 * 512**-0.5 * 16_000**-0.5, warmup "
                       "= 16_000), betas = [0.9, 0.997], eps = 1e-9)\n"
                       "  steps = 100\n}\n",
                       FRONTEND_TRAIN);
    CHECK_MSG(r.graph, "%s", r.errors);
    if (r.graph) {
        const LrSchedule *lr = &r.graph->train.rule.lr;
        CHECK(lr->kind == LR_INVERSE_SQRT && lr->warmup == 16000 && !lr->in_epochs);
        CHECK(fabs(lr->base - 6.9877124296868434e-4) < 1e-15);
    }
    elaborated_free(&r);
    r = elaborate_text("model m(x: f32[2, 4]) { return x |> fc: linear(3) }\n"
                       "train {\n"
                       "  batch = synthetic(x = f32[2, 4], label = i32[2])\n"
                       "  loss  = cross_entropy(m(batch.x), batch.label)\n"
                       "  optim = sgd(inverse_sqrt(0.1, warmup = 0))\n  steps = 1\n}\n",
                       FRONTEND_TRAIN);
    CHECK_MSG(strstr(r.errors, "E105") && strstr(r.errors, "warmup"), "%s", r.errors);
    elaborated_free(&r);
}

/* [N,C,...] or [..., C], as the labels say. */
static void check_class_axis(void)
{
    Elaborated r = elaborate_text("model m(a: f32[2, 5, 7], b: i32[2, 7], c: i32[2, 5]) {\n"
                                  "  return cross_entropy(a, b), cross_entropy(a, c)\n}\n",
                                  FRONTEND_INFER);
    const Node *pixel = find_node(&r, "%cross_entropy.0"),
               *token = find_node(&r, "%cross_entropy.1");
    CHECK(pixel && node_int(pixel, ATTR_axis, -1) == 1);
    CHECK(token && node_int(token, ATTR_axis, -1) == 2);
    elaborated_free(&r);
}

static void check_section_errors(void)
{
    static const struct {
        const char *rest, *code;
    } cases[] = {
        {"  optim = sgd(lr = 0.1)\n", "E211"},
        {"  steps = 10\n", "E211"},
        {PLAIN "  epochs = 2\n", "E211"},
        {PLAIN "  held_out = 100%\n", "E205"},
        {PLAIN "  accumulate = 0\n", "E105"},
        {PLAIN "  accumulate_by = \"max\"\n", "E205"},
        {PLAIN "  accumulate_by = 2\n", "E205"},
        {PLAIN "  seed = -1\n", "E105"},
        {"  optim = adam(lr = 0.1, betas = [0.9])\n  steps = 1\n", "E105"},
        {"  optim = sgd(lr = -1)\n  steps = 1\n", "E105"},
        {"  optim = sgd(lr = 1)\n  steps = 1\n  groups = [group(\"*\", lr = -1)]\n", "E105"},
        {"  optim = sgd(lr = 1)\n  steps = 1\n  held_out = 10%\n  patience = 0\n", "E105"},
        {"  optim = 3\n  steps = 1\n", "E205"},
        {"  optim = sgd(lr = 1, decay_on = matrices)\n  steps = 1\n", "E206"},
        {PLAIN "  metrics = batch.label\n", "E211"},
        {PLAIN "  metrics = total(loss) + loss\n", "E211"},
        {PLAIN "  metrics = total(zeros([2, 2, 2]))\n", "E211"},
        {PLAIN "  metrics = total(batch.label > 3)\n", "E104"},
        {PLAIN "  again = mnist(\"d\", batch = N)\n", "E211"},
        {PLAIN "  return loss\n", "E210"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 OPTIONS
                 "model m(x: f32[N, 3, 8, 8]) { return x |> flatten() |> fc: linear(10) }\n" TRAIN(
                     "m", "%s"),
                 cases[i].rest);
        Elaborated r = elaborate_text(text, FRONTEND_TRAIN);
        CHECK_MSG(strstr(r.errors, cases[i].code) && diag_error_count(r.diag) == 1, "%s: %s",
                  cases[i].rest, r.errors);
        elaborated_free(&r);
    }
    Elaborated r = elaborate_text(OPTIONS "model m(x: f32[N]) { return relu(x) }\n", FRONTEND_EVAL);
    CHECK(strstr(r.errors, "E211"));
    elaborated_free(&r);
}

/* At least three independent errors in one run, each once although the block is used twice. */
static void check_several_errors(void)
{
    Elaborated r = elaborate_text(OPTIONS "block B(x) { return x |> linear(4) |> rleu() }\n"
                                          "model m(x: f32[N, 8]) {\n"
                                          "  a = B(x)\n  b = B(x)\n"
                                          "  c = (x |> l1: linear(4)) + (x |> l2: linear(5))\n"
                                          "  d = relu(a) + tanh(b) * c |> l1: linear(3)\n"
                                          "  assert N == 5, \"N is {N}\"\n"
                                          "  return undefined\n"
                                          "}\n",
                                  FRONTEND_INFER);
    CHECK_MSG(diag_error_count(r.diag) == 5, "%s", r.errors);
    CHECK(strstr(r.errors, "E201") && strstr(r.errors, "E203") && strstr(r.errors, "E101") &&
          strstr(r.errors, "E202") && strstr(r.errors, "N is 4"));
    elaborated_free(&r);
}

/* A graph to be counted has statistics of a single value, and the model's results as outputs. */
static void check_count(void)
{
    static const char text[] = "model m(x: f32[1, 3, 4, 4]) {\n"
                               "  a = x |> c: conv(2, 4) |> identity() |> n: bn()\n"
                               "  return a |> flatten() |> l: linear(5), identity(x)\n"
                               "}\n"
                               "train {\n"
                               "  batch = synthetic(x = f32[1, 3, 4, 4], y = i32[1])\n"
                               "  loss = cross_entropy(m(batch.x)[0], batch.y)\n"
                               "  optim = sgd(lr = 0.1)\n  steps = 1\n}\n";
    FrontendOptions options = {.mode = FRONTEND_TRAIN, .count = true};
    Elaborated r = {.pool = pool_new()};
    r.diag = diag_new(r.pool);
    elaborated_finish(&r, frontend_parse_text(r.pool, r.diag, "t.scrimp", text, sizeof text - 1),
                      &options);
    CHECK(r.graph && graph_output(r.graph, "loss") != VALUE_NONE &&
          graph_output(r.graph, "logits") != VALUE_NONE &&
          graph_output(r.graph, "out1") != VALUE_NONE);
    CHECK_MSG(count_ops(&r, OP_bn_running) == 2 && count_ops(&r, OP_reshape) == 3, "%s", r.errors);
    elaborated_free(&r);
    r = elaborate_text(text, FRONTEND_TRAIN);
    CHECK_MSG(!r.graph && strstr(r.errors, "more than one value per channel"), "%s", r.errors);
    elaborated_free(&r);
}

int main(void)
{
    check_initial_values();
    check_seq_names();
    check_argument_names();
    check_shared();
    check_modes();
    check_shared_bn();
    check_dropout_keys();
    check_random();
    check_hints();
    check_train_section();
    check_class_axis();
    check_affine();
    check_inverse_sqrt();
    check_section_errors();
    check_several_errors();
    check_count();
    return test_result();
}
