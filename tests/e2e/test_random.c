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

/* Pictures of which metrics say what was done to them: of equal elements, of elements that number
 * their columns, and red ones. */
static const char augmented[] =
    "import \"std/all\"\n"
    "option N = 32\n"
    "model net(x: f32[N, 3]) { return x |> fc: linear(1) }\n"
    "train {\n"
    "  batch = synthetic(x = f32[N, 3])\n"
    "  even = full([N, 3, 6, 8], 0.5)\n"
    "  column = broadcast(to_f32(iota(8)), [N, 1, 6, 8])\n"
    "  zoomed = random_resized_crop(column, [0.25, 0.25], ratio = 1)\n"
    "  slope = zoomed[.., .., .., 4] - zoomed[.., .., .., 3]\n"
    "  uneven = mean(abs(random_resized_crop(even, [0.1, 1], mirror = 0.5) - 0.5))\n"
    "  steep = mean(slope)\n"
    "  where_to = std(mean(zoomed, axis = [1, 2, 3]))\n"
    "  moved = random_crop(column + 1, 2)\n"
    "  shift = moved[.., 0, 3, 4] - 5\n"
    "  far = max(abs(shift))\n"
    "  whole = mean(abs(shift - to_f32(cast(shift, i32))))\n"
    "  lost = mean(to_f32(moved == 0))\n"
    "  mirrored = mean(to_f32(random_flip(column, 0.25)[.., 0, 0, 0] == 7))\n"
    "  light = color_jitter(even, brightness = 0.4)\n"
    "  lightest = max(light)\n"
    "  darkest = min(light)\n"
    "  flat = mean(abs(color_jitter(even, contrast = 0.4, saturation = 0.4) - 0.5))\n"
    "  red = reshape(tensor([1, 0, 0]), [1, 3, 1, 1]) * ones([N, 3, 2, 2])\n"
    "  grey = mean(to_f32(random_grayscale(red, 0.5)[.., 1, 0, 0] > 0))\n"
    "  metrics = [uneven, steep, where_to, far, whole, lost, mirrored, lightest, darkest, flat, "
    "grey]\n"
    "  loss = mse(net(batch.x), 0)\n"
    "  optim = sgd(lr = 0.1)\n"
    "  steps = 6\n"
    "  held_out = 32\n"
    "  eval_every = 2\n"
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

/* Whether a metric lies in a range in each step, and is one number in evaluations. */
static void expect_between(const char *metric, double low, double high, double in_evaluations)
{
    double x[STEPS], y[EVALUATIONS];
    char name[40];
    snprintf(name, sizeof name, "val_%s", metric);
    EXPECT(values_of("augmented.log", metric, x, STEPS) == STEPS &&
               values_of("augmented.log", name, y, EVALUATIONS) == EVALUATIONS,
           metric);
    for (int i = 0; i < STEPS; i++)
        EXPECT(x[i] >= low && x[i] <= high, metric);
    for (int i = 0; i < EVALUATIONS; i++)
        EXPECT(fabs(y[i] - in_evaluations) < 1e-6, name);
}

/* Pictures are changed as asked for, each otherwise, and not at all in evaluations. */
static void test_augmented(void)
{
    write_text("augmented.scrimp", augmented);
    expect_ok("$SCRIMP train $TMP/augmented.scrimp -q --out $TMP/augmented --log "
              "$TMP/augmented.log");
    expect_between("uneven", 0, 1e-6, 0);
    expect_between("steep", 0.4, 0.46, 1); /* a part as wide as sqrt(6 8) / 2 of 8 columns */
    expect_between("where_to", 0.5, 2, 0);
    expect_between("far", 2, 2, 0);
    expect_between("whole", 0, 0, 0);
    expect_between("lost", 0.2, 0.5, 0);
    expect_between("mirrored", 0.01, 0.6, 0);
    expect_between("lightest", 0.6, 0.7, 0.5);
    expect_between("darkest", 0.3, 0.4, 0.5);
    expect_between("flat", 0, 1e-6, 0);
    expect_between("grey", 0.2, 0.8, 0);
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
    test_augmented();
    test_verify();
    test_no_tensor();
    return e2e_end();
}
