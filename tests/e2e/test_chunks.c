/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A loss that is made some rows at a time: the step needs less, its bits are those of every budget
 * and number of threads, and its numbers those of the loss of all rows at once. */
#include "e2e.h"
#include "equal_runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 4 * 640, CLASSES = 300 };
#define LM "$TMP/lm.scrimp"

/* A language model of which the logits are the largest tensor. */
static void write_model(void)
{
    FILE *f = fopen(in_tmp("lm.scrimp"), "w");
    if (!f)
        abort();
    fprintf(f, "option V = 300 \"classes\"\n"
               "model lm(ids: i32[4, 640]) {\n"
               "  x = ids |> e: embedding(300, 16)\n"
               "  for i in 0..2 { x = x + (x |> h[i]: linear(64) |> gelu() |> o[i]: linear(16)) }\n"
               "  return x |> last: linear(V)\n"
               "}\n"
               "train {\n"
               "  batch   = tokens(\"t.bin\", batch = 4, length = 640)\n"
               "  logits  = lm(batch.x)\n"
               "  loss    = cross_entropy(logits, batch.y, ignore_index = 4)\n"
               "  metrics = accuracy(logits, batch.y)\n"
               "  optim   = adamw(lr = 1e-2)\n"
               "  steps   = 3\n"
               "}\n");
    fclose(f);
    make_tokens(in_tmp("t.bin"), 20000);
}

/* A chunk's logits are there at a time; what else the peak has is more than half of them. */
static void test_peak(void)
{
    json_t *o = run_json(0, "$SCRIMP plan " LM " --budget 100%% --json");
    json_t *whole = run_json(0, "$SCRIMP plan " LM " --budget 100%% --no-chunks --json");
    double half = ROWS / 2 * CLASSES * 4;
    EXPECT(json_get_number(o, "peak_bytes") + 0.9 * half < json_get_number(whole, "peak_bytes"),
           "the peak");
    EXPECT(json_get_number(o, "arena_bytes") == json_get_number(o, "peak_bytes"), "the arena");
    EXPECT(json_get_number(o, "loss_chunks") == 10 && !json_object_get(whole, "loss_chunks"),
           "the number of chunks");
    EXPECT(json_get_number(o, "persistent_bytes") == json_get_number(whole, "persistent_bytes"),
           "what stays");
    json_decref(o);
    json_decref(whole);
    o = run_json(0, "$SCRIMP plan " LM " --budget min --json");
    whole = run_json(0, "$SCRIMP plan " LM " --budget min --no-chunks --json");
    EXPECT(json_get_number(o, "recomputed_ops") > 0, "the smallest budget recomputes");
    EXPECT(json_get_number(o, "peak_bytes") + 0.9 * half < json_get_number(whole, "peak_bytes"),
           "the smallest budget");
    json_decref(o);
    json_decref(whole);
}

/* A row of the log is a step: the loss, the accuracy and the norm of the gradients. */
static void train(const char *name, const char *options)
{
    Result r = run("$SCRIMP train " LM " -q --data $TMP/t.bin %s --out $TMP/%s --log $TMP/%s.log",
                   options, name, name);
    EXPECT(r.code == 0, r.err);
    result_free(&r);
}

static void test_training(void)
{
    train("first", "--budget 100% --threads 1");
    train("threads", "--budget 100% --threads 2");
    train("least", "--budget min --threads 1");
    train("both", "--budget min --threads 2");
    expect_equal_steps("first", "threads");
    expect_equal_steps("first", "least");
    expect_equal_steps("first", "both");
    /* Only sums have another order. */
    train("whole", "--budget 100% --threads 2 --no-chunks");
    expect_near_losses("first", "whole", 3, 1e-6);
    expect_near_tensors("first", "whole", WEIGHTS, 1e-4);
    double a = last_in_log(in_tmp("first.log"), "accuracy");
    double b = last_in_log(in_tmp("whole.log"), "accuracy");
    EXPECT(a > 0 && a - b < 1e-3 && b - a < 1e-3, "accuracy");
}

/* Another order of sums is no reason to refuse, but is told. */
static void test_resume(void)
{
    train("resumed", "--budget 100% --steps 2");
    Result r = run("$SCRIMP train " LM " -q --data $TMP/t.bin --out $TMP/resumed --resume "
                   "--no-chunks");
    EXPECT(r.code == 0 && strstr(r.err, "no_chunks = none (now true)"), r.err);
    result_free(&r);
}

static void test_verify(void)
{
    expect_said(0, "identical: 2 steps", "$SCRIMP verify " LM " --steps 2 --budget min");
    expect_said(0, "identical: 2 steps",
                "$SCRIMP verify " LM " --steps 2 --budget 70% --threads 1");
}

/* Labels are still known to be labels: of a number that is none, the user is told. */
static void test_labels(void)
{
    expect_run(1, "the data's y goes up to 289, the model has 250",
               "$SCRIMP train " LM " -D V=250 -q --steps 1 --data $TMP/t.bin");
}

int main(void)
{
    e2e_begin();
    write_model();
    test_peak();
    test_training();
    test_resume();
    test_verify();
    test_labels();
    return e2e_end();
}
