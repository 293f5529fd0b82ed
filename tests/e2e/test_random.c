/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random numbers of a model and of its train section, as a user sees them: others in every step,
 * call, micro-batch and run of another seed; the same when a run is resumed, under every budget, on
 * the simulated device, and in every evaluation. */
#include "e2e.h"
#include "equal_runs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOISE     "$TMP/noise.scrimp"
#define DIFFUSION "$TMP/diffusion.scrimp"
#define DEVICE    " --device cuda --exact"

/* Its metrics are means of what it draws: in the model, under a label, in the train section. */
static const char noise[] =
    "import \"std/random\"\n"
    "option held = 16, micro = 1\n"
    "block noise() { return mean(randn([6, 5])) }\n"
    "model net(x: f32[8, 4]) {\n"
    "  return x |> fc: linear(4) |> drop_path(0.5), noise(), n: noise()\n}\n"
    "train {\n"
    "  batch = synthetic(x = f32[8, 4])\n"
    "  y, model, label = net(batch.x)\n"
    "  own = mean(randn([6, 5]))\n"
    "  again = mean(randn([6, 5]))\n"
    "  d = drop_path(ones([8, 3]), 0.5)\n"
    "  kept = mean(d)\n"
    "  uneven = sum(abs(d - mean(d, axis = 1, keepdims = true)))\n"
    "  metrics = [model, label, own, again, kept, uneven]\n"
    "  loss = mse(y + randn(y.shape), batch.x * bernoulli(0.5, [8, 1])) + 0.1 * own * mean(y)\n"
    "  optim = adam(lr = 0.1)\n"
    "  steps = 6\n"
    "  held_out = held\n"
    "  eval_every = 2\n"
    "  accumulate = micro\n"
    "}\n";
enum { DRAWS = 4, STEPS = 6, EVALUATIONS = 3 };
static const char *const drawn[DRAWS] = {"model", "label", "own", "again"};

/* A denoising step at a random time, on images, with residual blocks that are left out at random.
 */
static const char diffusion[] =
    "import \"std/all\"\n"
    "option N = 16\n"
    "block Res(x: [N, C, _, _], e) {\n"
    "  h = x |> norm1: groupnorm(2) |> silu() |> conv1: conv(C, 3, pad = 1)\n"
    "  h = h + reshape(e |> time: linear(C), [N, C, 1, 1])\n"
    "  return x + (h |> norm2: groupnorm(2) |> silu() |> conv2: conv(C, 3, pad = 1) |> "
    "drop_path(0.2))\n"
    "}\n"
    "model unet(x: f32[N, 1, 16, 16], t: i32[N]) {\n"
    "  e = t |> steps: embedding(100, 16) |> silu()\n"
    "  a = x |> head: conv(8, 3, pad = 1) |> r1: Res(e)\n"
    "  b = a |> maxpool(2) |> r2: Res(e) |> resize([16, 16], mode = nearest)\n"
    "  return concat([a, b], axis = 1) |> r3: Res(e) |> tail: conv(1, 3, pad = 1)\n"
    "}\n"
    "train {\n"
    "  batch = synthetic(x = f32[N, 1, 16, 16])\n"
    "  t     = randint([N], 100)\n"
    "  noise = randn(batch.x.shape)\n"
    "  a     = reshape(cos(to_f32(t) * 0.015) ** 2, [N, 1, 1, 1])\n"
    "  loss  = mse(unet(sqrt(a) * batch.x + sqrt(1 - a) * noise, t), noise)\n"
    "  optim = adam(lr = 1e-3)\n"
    "  steps = 4\n"
    "}\n";

/* Mixup (Zhang et al. 2018): pictures and labels in one random order. */
static const char mixup[] =
    "import \"std/random\"\n"
    "option N = 40\n"
    "model net(x: f32[N, 12]) { return x |> fc1: linear(16) |> relu() |> fc2: linear(10) }\n"
    "train {\n"
    "  batch = synthetic(x = f32[N, 12], label = i32[N])\n"
    "  p = permutation(N)\n"
    "  part = rand([])\n"
    "  y = net(part * batch.x + (1 - part) * index_select(batch.x, p, 0))\n"
    "  other = index_select(batch.label, p, 0)\n"
    "  loss = part * cross_entropy(y, batch.label) + (1 - part) * cross_entropy(y, other)\n"
    "  missing = mean(abs(to_f32(sort(p) - iota(N))))\n"
    "  moved = mean(to_f32(p != iota(N)))\n"
    "  order = sum(to_f32(p) * to_f32(iota(N)))\n"
    "  s = shuffle(to_f32(iota(N)))\n"
    "  lost = mean(abs(sort(s) - to_f32(iota(N))))\n"
    "  another = sum(s * to_f32(iota(N)))\n"
    "  metrics = [missing, moved, order, lost, another]\n"
    "  optim = adam(lr = 1e-3)\n"
    "  steps = 6\n"
    "}\n";

static void write_text(const char *name, const char *text)
{
    FILE *f = fopen(in_tmp(name), "w");
    fputs(text, f);
    fclose(f);
}

/* The values of a key in the lines of a log that have it; how many. */
static int values_of(const char *log, const char *key, double *out, int most)
{
    int n = 0;
    char *text = read_text(in_tmp(log), NULL);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        json_t *o = json_loads(line, 0, NULL);
        if (json_object_get(o, key) && n < most)
            out[n++] = json_get_number(o, key);
        json_decref(o);
    }
    free(text);
    return n;
}

/* A run of the model with these options, as $TMP/NAME and $TMP/NAME.log. */
static void train(const char *name, const char *before, const char *options)
{
    char command[500];
    snprintf(command, sizeof command,
             "%s $SCRIMP train " NOISE " -q %s --out $TMP/%s --log $TMP/%s.log", before, options,
             name, name);
    expect_ok(command);
}

/* All that a run draws in its steps; every number is another. */
static void draws_of(const char *log, double x[DRAWS * STEPS])
{
    for (int k = 0; k < DRAWS; k++)
        EXPECT(values_of(log, drawn[k], x + k * STEPS, STEPS) == STEPS, drawn[k]);
    for (int i = 0; i < DRAWS * STEPS; i++)
        for (int k = 0; k < i; k++)
            EXPECT(x[i] != x[k], "two calls or steps draw the same");
}

static void expect_apart(const char *a, const char *b, const char *what)
{
    double x[DRAWS * STEPS], y[DRAWS * STEPS];
    draws_of(a, x);
    draws_of(b, y);
    for (int i = 0; i < DRAWS * STEPS; i++)
        EXPECT(x[i] != y[i], what);
}

static void test_streams(void)
{
    train("whole", "", "");
    train("seeded", "", "--seed 1");
    train("micro", "", "-D micro=2");
    expect_apart("whole.log", "seeded.log", "two seeds draw the same");
    expect_apart("whole.log", "micro.log", "micro-batches draw the same");
}

static void test_same(void)
{
    train("parts", "", "--steps 4 --threads 1");
    train("parts", "", "--resume --budget min");
    expect_equal_steps("whole", "parts");
    train("device", SIMULATED, "--device cuda --exact");
    expect_equal_steps("whole", "device");
}

/* Whatever the step, the seed and the micro-batches; each batch of an evaluation draws its own. */
static void test_evaluations(void)
{
    static const char *const logs[] = {"whole.log", "seeded.log", "micro.log"};
    double x[EVALUATIONS], first = 0;
    for (int i = 0; i < 3; i++) {
        EXPECT(values_of(logs[i], "val_own", x, EVALUATIONS) == EVALUATIONS, logs[i]);
        first = i == 0 ? x[0] : first;
        for (int k = 0; k < EVALUATIONS; k++)
            EXPECT(x[k] == first, "evaluations draw others");
    }
    json_t *seed = run_json(0, "$SCRIMP eval " NOISE " --checkpoint $TMP/whole --seed 7 --json");
    json_t *both = run_json(0, "$SCRIMP eval " NOISE " --checkpoint $TMP/whole --json");
    json_t *one = run_json(0, "$SCRIMP eval " NOISE " --checkpoint $TMP/whole -D held=8 --json");
    EXPECT(fabs(json_get_number(both, "own") - first) < 1e-7 &&
               json_get_number(seed, "own") == json_get_number(both, "own"),
           "eval draws others");
    EXPECT(fabs(json_get_number(both, "loss") - last_in_log(in_tmp("whole.log"), "val_loss")) <
               1e-6,
           "eval and the last evaluation of train");
    EXPECT(json_get_number(one, "own") != json_get_number(both, "own"), "batches draw the same");
    json_decref(seed);
    json_decref(both);
    json_decref(one);
}

/* Of the eight examples each is whole, and doubled, or gone; in an evaluation all are there. */
static void test_drop_path(void)
{
    double kept[STEPS], uneven[STEPS], whole[EVALUATIONS];
    bool some = false;
    EXPECT(values_of("whole.log", "kept", kept, STEPS) == STEPS &&
               values_of("whole.log", "uneven", uneven, STEPS) == STEPS &&
               values_of("whole.log", "val_kept", whole, EVALUATIONS) == EVALUATIONS,
           "what is kept is in the log");
    for (int i = 0; i < STEPS; i++) {
        EXPECT(fabs(kept[i] * 4 - round(kept[i] * 4)) < 1e-6 && uneven[i] == 0,
               "parts of examples");
        some |= kept[i] > 0 && kept[i] < 2;
    }
    EXPECT(some && whole[0] == 1, "all or none are kept, or some in an evaluation");
}

/* Every number once, in an order that is another in each step and call. */
static void test_permutation(void)
{
    double missing[STEPS], moved[STEPS], order[STEPS], lost[STEPS], another[STEPS];
    write_text("mixup.scrimp", mixup);
    expect_ok("$SCRIMP train $TMP/mixup.scrimp -q --out $TMP/mixup --log $TMP/mixup.log");
    EXPECT(values_of("mixup.log", "missing", missing, STEPS) == STEPS &&
               values_of("mixup.log", "moved", moved, STEPS) == STEPS &&
               values_of("mixup.log", "order", order, STEPS) == STEPS &&
               values_of("mixup.log", "lost", lost, STEPS) == STEPS &&
               values_of("mixup.log", "another", another, STEPS) == STEPS,
           "all is in the log");
    for (int i = 0; i < STEPS; i++) {
        EXPECT(missing[i] == 0 && lost[i] == 0, "no permutation");
        EXPECT(moved[i] > 0.75 && order[i] != another[i], "hardly permuted, or twice the same");
        EXPECT(i == 0 || order[i] != order[i - 1], "two steps have one order");
    }
    expect_said(0, "identical", "$SCRIMP verify $TMP/mixup.scrimp --budget min");
    expect_said(0, "identical", SIMULATED "$SCRIMP verify $TMP/mixup.scrimp --budget min" DEVICE);
}

static void test_verify(void)
{
    write_text("diffusion.scrimp", diffusion);
    expect_said(0, "identical", "$SCRIMP verify " DIFFUSION " --budget 50%");
    expect_said(0, "identical", "$SCRIMP verify " DIFFUSION " --budget min --threads 1");
    expect_said(0, "identical",
                SIMULATED "$SCRIMP verify " DIFFUSION " -D N=4 --budget min" DEVICE);
    expect_said(0, "identical",
                "$SCRIMP verify $EXAMPLES/vae.scrimp -D N=300 -D hidden=40 --budget min");
}

/* What is drawn for element-wise operations is no tensor: of the noise nothing is in the plan. */
static void test_no_tensor(void)
{
    expect_ok("! $SCRIMP dump $EXAMPLES/vae.scrimp --stage=plan | grep '^  %random'");
}

int main(void)
{
    e2e_begin();
    write_text("noise.scrimp", noise);
    test_streams();
    test_same();
    test_evaluations();
    test_drop_path();
    test_permutation();
    test_verify();
    test_no_tensor();
    return e2e_end();
}
