/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs whose numbers stop being finite: the last finite set stays, the message says what was first
 * and where it came from, and no weights that are not finite are used. */
#include "e2e.h"
#include "equal_runs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { EXAMPLES = 40, WIDTH = 12, BAD_EXAMPLE = 29 };

static void write_npy(const char *name, const char *type, const char *shape, const void *data,
                      size_t bytes)
{
    char path[500], header[128];
    snprintf(path, sizeof path, "%s/%s", e2e_tmp(), name);
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type,
             shape);
    FILE *f = fopen(path, "wb");
    fprintf(f, "\x93NUMPY\x01%c\x76%c%-117s\n", 0, 0, header);
    fwrite(data, 1, bytes, f);
    fclose(f);
}

/* $TMP/good and $TMP/bad: the same numbers, but for one. */
static void write_data(float wrong)
{
    static float x[EXAMPLES][WIDTH];
    int32_t y[EXAMPLES];
    char path[500];
    for (int i = 0; i < EXAMPLES; i++) {
        y[i] = i % 4;
        for (int k = 0; k < WIDTH; k++)
            x[i][k] = (float)((i * 31 + k * 17) % 23) / 23 + (float)y[i];
    }
    static const char *const folder[] = {"good", "bad"};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", e2e_tmp(), folder[i]);
        mkdir(path, 0777);
        x[BAD_EXAMPLE][5] = i ? wrong : 0.5f;
        snprintf(path, sizeof path, "%s/x.npy", folder[i]);
        write_npy(path, "<f4", "(40, 12)", x, sizeof x);
        snprintf(path, sizeof path, "%s/y.npy", folder[i]);
        write_npy(path, "<i4", "(40,)", y, sizeof y);
    }
}

static void write_model(const char *optim, int held_out, const char *more)
{
    char path[400];
    snprintf(path, sizeof path, "%s/m.scrimp", e2e_tmp());
    FILE *f = fopen(path, "w");
    fprintf(f,
            "option N = 4\n"
            "model m(x: f32[N, 12]) { return x |> a: linear(16) |> relu() |> b: linear(4) }\n"
            "train {\n"
            "  batch = npy(\"good\", batch = N, x = f32[N, 12], y = i32[N])\n"
            "  loss = cross_entropy(m(batch.x), batch.y)\n"
            "  optim = %s\n  epochs = 2\n  held_out = %d\n  %s\n}\n",
            optim, held_out, more);
    fclose(f);
}

/* The step at which a log first has `pattern`; 0: none. */
static int step_of(const char *log, const char *pattern)
{
    Result r =
        run("grep -m 1 '%s' $TMP/%s | sed 's/.*\"step\": \\([0-9]*\\).*/\\1/'", pattern, log);
    int step = atoi(r.out);
    result_free(&r);
    return step;
}

/* The default: exit code 1, the step, the example; the set before it stays; what the step left lies
 * beside it and is used by nobody. */
static void test_stop(void)
{
    char command[600], said[200];
    expect_said(1, "E521",
                "$SCRIMP train $TMP/m.scrimp --data $TMP/bad --out $TMP/stop --log "
                "$TMP/stop.log -q");
    int step = step_of("stop.log", "\"loss\": null");
    EXPECT(step > 1, "no step without a loss");
    snprintf(said, sizeof said, "step %d: the loss is nan; example 29 of x.npy", step);
    expect_said(1, said, "$SCRIMP train $TMP/m.scrimp --data $TMP/bad --out $TMP/stop --resume -q");
    snprintf(command, sizeof command,
             "$SCRIMP train $TMP/m.scrimp --data $TMP/bad --out $TMP/before --steps %d -q",
             step - 1);
    expect_said(0, NULL, command);
    expect_equal_runs("stop", "before");
    snprintf(command, sizeof command, "test -e $TMP/stop/diverged/model-%010d*.safetensors", step);
    expect_said(0, NULL, command);
    expect_said(0, "loss", "$SCRIMP eval $TMP/m.scrimp --data $TMP/good --checkpoint $TMP/stop");
    static const char *const aside[] = {"diverged", "diverged/model.safetensors"};
    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof command,
                 "$SCRIMP eval $TMP/m.scrimp --data $TMP/good --checkpoint $TMP/stop/%s", aside[i]);
        expect_said(1, "the weight a.weight has nan", command);
    }
    expect_said(1, "E522",
                "$SCRIMP train $TMP/m.scrimp --data $TMP/good --checkpoint "
                "$TMP/stop/diverged -q");
    expect_said(1, "E522",
                "$SCRIMP train $TMP/m.scrimp --data $TMP/bad --out $TMP/stop/diverged "
                "--resume -q");
}

/* The run goes on; what it saves lies beside the last finite set. */
static void test_warn(void)
{
    Result r = run("$SCRIMP train $TMP/m.scrimp --data $TMP/bad --out $TMP/warn --on-nan warn -q");
    EXPECT(r.code == 0 && strstr(r.err, "example 29 of x.npy"), r.err);
    EXPECT(strstr(r.err, "note: the newest save, of step 18, is in"), r.err);
    result_free(&r);
    expect_equal_runs("warn", "before");
    expect_said(0, NULL, "test -e $TMP/warn/diverged/model-0000000018.safetensors");
}

/* Every step that meets the example is as if it had not been: the sets before and after it are the
 * same, and a run that is resumed equals one that was not. */
static void test_skip(void)
{
    char command[600];
    expect_said(0, "2 steps were taken back",
                "$SCRIMP train $TMP/m.scrimp --data $TMP/bad --out $TMP/skip --on-nan skip --log "
                "$TMP/skip.log -q");
    int step = step_of("skip.log", "\"skipped\": true");
    EXPECT(step > 1 && step == step_of("stop.log", "\"loss\": null"),
           "the step that is taken back");
    expect_said(0, "2", "grep -c skipped $TMP/skip.log");
    snprintf(
        command, sizeof command,
        "$SCRIMP train $TMP/m.scrimp --data $TMP/bad --out $TMP/at --steps %d --on-nan skip -q",
        step);
    expect_said(0, "copy of", command);
    expect_equal_runs("at", "before");
    expect_said(0, NULL,
                "$SCRIMP train $TMP/m.scrimp --data $TMP/bad --out $TMP/at --on-nan skip "
                "--threads 1 --resume -q");
    expect_equal_runs("at", "skip");
    expect_said(0, "loss", "$SCRIMP eval $TMP/m.scrimp --data $TMP/good --checkpoint $TMP/skip");
    expect_said(0, NULL, "test ! -e $TMP/skip/diverged");
    /* With a step size at which nothing is learned any more, skipping comes to an end. */
    expect_said(
        1, "100 steps in a row were taken back",
        "sed 's/lr = [0-9.e-]*/lr = 1e30/; s/steps *= *[0-9]*/steps = 400/; s/epochs *= *[0-9]*/"
        "steps = 400/' $TMP/m.scrimp > $TMP/far.scrimp && $SCRIMP train $TMP/far.scrimp --data "
        "$TMP/good --out $TMP/far --on-nan skip -q");
    expect_said(0, NULL, "test ! -e $TMP/far/diverged");
    /* Where all is finite, no policy changes a bit. */
    expect_said(0, NULL, "$SCRIMP train $TMP/m.scrimp --data $TMP/good --out $TMP/plain -q");
    expect_said(0, NULL,
                "$SCRIMP train $TMP/m.scrimp --data $TMP/good --out $TMP/careful --on-nan "
                "skip -q");
    expect_equal_runs("plain", "careful");
}

/* Not the data but the rate; and a run that ends by a signal, or in the first step, keeps to it. */
static void test_diverging(void)
{
    write_model("sgd(lr = 1e38)", 4, "eval_every = 1");
    expect_said(1, "the weight a.weight has",
                "$SCRIMP train $TMP/m.scrimp --data $TMP/good --out $TMP/wild -q");
    expect_said(1, "smaller lr",
                "$SCRIMP train $TMP/m.scrimp --data $TMP/good --out $TMP/wild "
                "--resume -q");
    expect_said(1, "lr, a warmup or clip = 1; --resume --on-nan skip takes such steps back",
                "$SCRIMP train $TMP/m.scrimp --data $TMP/good --out $TMP/wild "
                "--resume -q");
    expect_said(1, "; start again with --on-nan skip, which takes such steps back",
                "$SCRIMP train $TMP/m.scrimp --data $TMP/good -q");
    expect_said(1, "help: try a smaller lr or a warmup; start again",
                "sed 's/1e38/1e38, clip = 1e30/' $TMP/m.scrimp > $TMP/clip.scrimp && "
                "$SCRIMP train $TMP/clip.scrimp --data $TMP/good -q");
    expect_said(0, "taken back",
                "$SCRIMP train $TMP/m.scrimp --data $TMP/good --on-nan skip -q "
                "--out $TMP/tame");
    expect_said(0, "loss", "$SCRIMP eval $TMP/m.scrimp --data $TMP/good --checkpoint $TMP/tame");
    write_model("sgd(lr = 1e38, momentum = 0.9, gradient_free = true)", 4, "eval_every = 18");
    expect_said(1,
                "start again with --on-nan skip, which takes such steps back; no step was saved "
                "before",
                "$SCRIMP train $TMP/m.scrimp --data $TMP/good --out $TMP/free -q");
    expect_said(0, NULL,
                "test ! -e $TMP/free/trainer.json && test -e $TMP/free/diverged/trainer.json");
    expect_said(0, NULL,
                "$SCRIMP train $TMP/m.scrimp --data $TMP/good --out $TMP/free2 --on-nan skip -q");
    expect_said(0, "loss", "$SCRIMP eval $TMP/m.scrimp --data $TMP/good --checkpoint $TMP/free2");
    expect_said(1, "stop (the default), warn or skip",
                "$SCRIMP train $TMP/m.scrimp --on-nan perhaps");
}

/* No rate is to blame for the loss of the first step. */
static void test_model(void)
{
    write_model("sgd(lr = 0.01)", 4, "steps = 3");
    expect_said(
        1, "help: it is so before the first update: look for what the model divides by",
        "sed 's/loss = cross_entropy(\\(.*\\)$/loss = log(-1.0 - cross_entropy(\\1)/; /epochs/d' "
        "$TMP/m.scrimp > $TMP/log.scrimp && "
        "$SCRIMP train $TMP/log.scrimp --data $TMP/good -q");
}

/* An example that is only evaluated, and one in a micro-batch. */
static void test_places(void)
{
    write_model("adamw(lr = 1e-2)", 12, "eval_every = 7");
    expect_said(0, "held-out loss is not finite: example 29 of x.npy (counted from 0) has inf",
                "$SCRIMP train $TMP/m.scrimp --data $TMP/bad --out $TMP/held -q");
    expect_said(0, "example 29 of x.npy",
                "$SCRIMP eval $TMP/m.scrimp --data $TMP/bad --checkpoint "
                "$TMP/held");
    write_model("adamw(lr = 1e-2)", 4, "accumulate = 3");
    expect_said(1, "example 29 of x.npy (counted from 0) has inf in element 5",
                "$SCRIMP train $TMP/m.scrimp --data $TMP/bad -q");
}

/* Text of weights that are not finite would be nonsense, silently. */
static void test_generate(void)
{
    char path[400];
    snprintf(path, sizeof path, "%s/lm.scrimp", e2e_tmp());
    FILE *f = fopen(path, "w");
    fputs(
        "option N = 4, T = 8, V = 300\n"
        "model lm(ids: i32[N, T]) { return ids |> wte: embedding(V, 8) |> head: linear(V) }\n"
        "train {\n  batch = synthetic(x = i32[N, T], y = i32[N, T])\n"
        "  loss = cross_entropy(lm(batch.x), batch.y)\n  optim = sgd(lr = 1e38)\n  steps = 3\n}\n",
        f);
    fclose(f);
    expect_said(1, "E521", "$SCRIMP train $TMP/lm.scrimp --out $TMP/lm -q");
    expect_said(1, "E522", "$SCRIMP generate $TMP/lm.scrimp --checkpoint $TMP/lm/diverged");
}

int main(void)
{
    e2e_begin();
    write_data(NAN);
    write_model("adamw(lr = 1e-2)", 4, "eval_every = 1");
    test_stop();
    test_warn();
    test_skip();
    test_diverging();
    test_model();
    write_data(INFINITY);
    test_places();
    test_generate();
    return e2e_end();
}
