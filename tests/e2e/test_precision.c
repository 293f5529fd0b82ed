/* SPDX-License-Identifier: GPL-3.0-or-later */
/* precision = bf16: training comes as far as with f32, in less memory; the same bits under every
 * budget and on the simulated device; checkpoints are f32 and move between precisions. */
#include "e2e.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An example with its precision as an option, and small sizes. */
typedef struct Example {
    const char *name, *options, *data;
    double tolerance; /* of the last loss, as a part of that of f32 */
} Example;

static const Example gpt = {"chargpt", "-D N=4 -D T=16 -D L=1 -D C=32", "$TMP/t.txt", 0.02},
                     resnet = {"resnet", "-D depth=18 -D N=4 -D size=32 -D classes=10", NULL, 0.1},
                     convnet = {"convnet", "-D N=20 -D width=8", "$TMP/idx", 0.1};

static void make_example(const Example *e)
{
    /* Of a ResNet, the first two stages: the others only have more channels. */
    Result r = run("sed -e '1i option precision = \"f32\" in [\"f32\", \"bf16\"]' "
                   "-e '/held_out/d' -e 's/for i in 0..4 {/for i in 0..2 {/' -e 's/^train {/train "
                   "{\\n  precision = precision/' "
                   "$EXAMPLES/%s.scrimp > $TMP/%s.scrimp",
                   e->name, e->name);
    EXPECT(r.code == 0, r.err);
    result_free(&r);
}

static void train(const Example *e, const char *precision, int steps, const char *out,
                  const char *more)
{
    Result r = run("%s$SCRIMP train -q $TMP/%s.scrimp %s -D precision=%s %s %s --seed 3 --steps %d "
                   "--out $TMP/%s --log $TMP/%s.log %s",
                   strstr(more, "--device") ? "SCRIMP_CUDA_PATH=$SCRIMP_BUILD/cuda-sim " : "",
                   e->name, e->options, precision, e->data ? "--data" : "", e->data ? e->data : "",
                   steps, out, out, more);
    EXPECT(r.code == 0, r.err);
    result_free(&r);
}

static double last_loss(const char *out)
{
    char name[32];
    snprintf(name, sizeof name, "%s.log", out);
    return last_in_log(in_tmp(name), "loss");
}

static void test_losses(const Example *e, int steps)
{
    train(e, "f32", steps, "whole", "");
    train(e, "bf16", steps, "half", "");
    double whole = last_loss("whole"), half = last_loss("half");
    char text[96];
    snprintf(text, sizeof text, "%s: %g instead of %g", e->name, half, whole);
    EXPECT(fabs(half - whole) <= e->tolerance * whole, text);
    EXPECT(half != whole, text);
    expect_ok("rm -r $TMP/whole $TMP/half $TMP/whole.log $TMP/half.log");
}

static double arena(const Example *e, const char *precision)
{
    json_t *plan =
        run_json(0, "$SCRIMP plan $TMP/%s.scrimp %s -D precision=%s --budget 100%% --json", e->name,
                 e->options, precision);
    double bytes = plan ? json_get_number(plan, "arena_bytes") : 0;
    json_decref(plan);
    return bytes;
}

/* Activations are most of what the step of a network of images holds. */
static void test_memory(void)
{
    double whole = arena(&convnet, "f32"), half = arena(&convnet, "bf16");
    char text[64];
    snprintf(text, sizeof text, "%.0f instead of %.0f bytes", half, whole);
    EXPECT(half > 0 && half < 0.7 * whole, text);
}

static void test_verify(const Example *e, const char *budget)
{
    Result r = run("$SCRIMP verify $TMP/%s.scrimp %s -D precision=bf16 --steps 2 --budget %s",
                   e->name, e->options, budget);
    EXPECT(r.code == 0 && strstr(r.out, "identical: 2 steps"), r.err);
    result_free(&r);
}

static void test_device(const Example *e)
{
    train(e, "bf16", 3, "host", "--exact");
    train(e, "bf16", 3, "device", "--device cuda --exact");
    expect_ok("cmp $TMP/host/model.safetensors $TMP/device/model.safetensors");
    expect_ok("rm -r $TMP/host $TMP/device $TMP/host.log $TMP/device.log");
}

/* The weights are f32, whichever precision they were trained with. */
static void test_checkpoints(void)
{
    train(&gpt, "bf16", 4, "moved", "");
    expect_ok("! grep -q BF16 $TMP/moved/model.safetensors && "
              "grep -q '\"F32\"' $TMP/moved/model.safetensors");
    train(&gpt, "f32", 6, "on", "--checkpoint $TMP/moved");
    train(&gpt, "bf16", 6, "moved", "--resume");
    expect_ok("$SCRIMP generate $TMP/chargpt.scrimp -D N=4 -D T=16 -D L=1 -D C=32 "
              "--checkpoint $TMP/moved --prompt a --tokens 5");
}

/* The weights of a run as one vector. */
static const float *weights_of(const char *out, char **file, int64_t *n)
{
    char name[64];
    long length = 0;
    uint64_t header = 0;
    snprintf(name, sizeof name, "%s/model.safetensors", out);
    *file = read_text(in_tmp(name), &length);
    if (*file && length > 8)
        memcpy(&header, *file, sizeof header);
    *n = *file ? (length - 8 - (long)header) / 4 : 0;
    EXPECT(*n > 1000, out);
    return *n > 0 ? (const float *)(const void *)(*file + 8 + header) : NULL;
}

static double distance(const char *a, const char *b)
{
    char *file_a, *file_b;
    int64_t n, m;
    const float *x = weights_of(a, &file_a, &n), *y = weights_of(b, &file_b, &m);
    double sum = n == m ? 0 : (double)NAN;
    for (int64_t i = 0; i < n && n == m; i++)
        sum += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
    free(file_a);
    free(file_b);
    return sqrt(sum);
}

/* One more step of a run, in a copy of it. */
static void go_on(const char *precision, const char *out)
{
    char command[160];
    snprintf(command, sizeof command, "cp -r $TMP/begun $TMP/%s && cp $TMP/begun.log $TMP/%s.log",
             out, out);
    expect_ok(command);
    train(&gpt, precision, 7, out, "--resume");
}

/* A run goes on in another precision from the state that it has: its next step is that of the same
 * precision up to the rounding of activations.  Without the optimizer's state or its step, or on
 * another batch, it would be another one. */
static void test_resume(const char *precision, const char *other)
{
    train(&gpt, precision, 6, "begun", "");
    go_on(precision, "same");
    go_on(other, "changed");
    double step = distance("begun", "same"), difference = distance("same", "changed");
    char text[96];
    snprintf(text, sizeof text, "%s, then %s: %g, a step is %g", precision, other, difference,
             step);
    EXPECT(difference > 0 && difference < 0.02 * step, text);
    EXPECT(last_in_log(in_tmp("same.log"), "lr") == last_in_log(in_tmp("changed.log"), "lr"), text);
    expect_ok("rm -r $TMP/begun $TMP/same $TMP/changed $TMP/*.log");
}

#define SMALL  "$TMP/chargpt.scrimp -D N=4 -D T=16 -D L=1 -D C=32"
#define RESUME "$SCRIMP train " SMALL " --data $TMP/t.txt --out $TMP/begun --resume "

/* The note of a run that goes on with another precision, and again with its own. */
static void test_resume_says(void)
{
    train(&gpt, "f32", 1, "begun", "");
    expect_run(0, "had precision = \"f32\" (now \"bf16\")", RESUME "-D precision=bf16 --steps 2");
    expect_run(0, "had precision = \"bf16\" (now \"f32\")", RESUME "-D precision=f32 --steps 3");
    expect_ok("rm -r $TMP/begun $TMP/begun.log");
}

static double eval_loss(const char *precision)
{
    json_t *o = run_json(0,
                         "sed 's/^train {/train {\\n  held_out = 10%%/' $TMP/chargpt.scrimp > "
                         "$TMP/held.scrimp && $SCRIMP eval $TMP/held.scrimp -D N=4 -D T=16 -D L=1 "
                         "-D C=32 -D precision=%s --data $TMP/t.txt --checkpoint $TMP/moved --json",
                         precision);
    double loss = o ? json_get_number(o, "loss") : (double)NAN;
    json_decref(o);
    return loss;
}

/* generate and summary take the model alone, which the train section says nothing about; eval
 * computes as training does. */
static void test_other_verbs(void)
{
    expect_ok("for p in f32 bf16; do $SCRIMP generate " SMALL " -D precision=$p --seed 4 "
              "--checkpoint $TMP/moved --prompt a --tokens 40 > $TMP/$p.said || exit 1; done; "
              "cmp $TMP/f32.said $TMP/bf16.said && test $(wc -c < $TMP/f32.said) -gt 40");
    expect_ok("for p in f32 bf16; do $SCRIMP summary " SMALL " -D precision=$p > $TMP/$p.sum || "
              "exit 1; done; cmp $TMP/f32.sum $TMP/bf16.sum && grep -q attn $TMP/bf16.sum");
    double whole = eval_loss("f32"), half = eval_loss("bf16");
    char text[64];
    snprintf(text, sizeof text, "%g instead of %g", half, whole);
    EXPECT(half != whole && fabs(half - whole) <= 0.01 * whole, text);
}

static void test_errors(void)
{
    expect_ok(
        "sed 's/^train {/train {\\n  precision = f16/' $EXAMPLES/mlp.scrimp > $TMP/f16.scrimp");
    expect_run(1, "`precision` is f32, tf32 or bf16, got f16", "$SCRIMP check $TMP/f16.scrimp");
    expect_run(1, "precision = bf16: f16 needs its loss scaled", "$SCRIMP check $TMP/f16.scrimp");
    expect_ok("sed -i 's/= f16/= float16/' $TMP/f16.scrimp");
    expect_run(1, "precision = bf16: f16 needs its loss scaled", "$SCRIMP check $TMP/f16.scrimp");
    expect_ok("sed -i 's/= float16/= float32/' $TMP/f16.scrimp");
    expect_run(1, "precision = f32", "$SCRIMP check $TMP/f16.scrimp");
}

int main(void)
{
    e2e_begin();
    make_digits(200);
    make_text(in_tmp("t.txt"), 4000);
    make_example(&gpt);
    make_example(&resnet);
    make_example(&convnet);
    test_losses(&gpt, 40);
    test_losses(&resnet, 6);
    test_memory();
    test_verify(&convnet, "60%");
    test_verify(&convnet, "min");
    test_verify(&gpt, "min");
    test_device(&gpt);
    test_device(&convnet);
    test_resume("f32", "bf16");
    test_resume("bf16", "f32");
    test_resume_says();
    test_checkpoints();
    test_other_verbs();
    test_errors();
    return e2e_end();
}
