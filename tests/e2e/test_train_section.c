/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a train section may say of parameters, rates and running means, from the file to the
 * checkpoint: runs that are resumed, or made on the simulated device, have the bits of one that was
 * not, and evaluations have the running means. */
#include "e2e.h"
#include "equal_runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRAIN "$SCRIMP train -q $TMP/model.scrimp "

static void write_model(const char *rate)
{
    FILE *f = fopen(in_tmp("model.scrimp"), "w");
    if (!f)
        abort();
    fprintf(f,
            "model m(x: f32[8, 3, 6, 6]) {\n"
            "  x = x |> stem: conv(4, 3) |> bn1: bn() |> relu() |> body: conv(6, 3) |> flatten()\n"
            "  return x |> f1: linear(16) |> tanh() |> f2: linear(12) |> tanh() |> f3: linear(5)\n"
            "}\n"
            "train {\n"
            "  batch = synthetic(x = f32[8, 3, 6, 6], y = i32[8])\n"
            "  loss = cross_entropy(m(batch.x), batch.y)\n"
            "  optim = rmsprop(lr = %s, momentum = 0.9, centered = true, clip = 1)\n"
            "  groups = [group(\"stem.*\", frozen = true),\n"
            "            group([\"body.*\", \"f1.*\"], on = matrices, optim = muon(lr = 0.01)),\n"
            "            group(\"f2.*\", optim = adafactor(lr = 0.01)),\n"
            "            group(\"f3.*\", optim = lamb(lr = one_cycle(0.01))),\n"
            "            group(\"*.bias\", lr = 20%%, clip_value = 0.01)]\n"
            "  ema = 0.8\n  accumulate = 2\n  held_out = 80\n  eval_every = 4\n  steps = 12\n"
            "}\n",
            rate);
    fclose(f);
}

static void test_resume(void)
{
    expect_ok(TRAIN "--out $TMP/whole --log $TMP/whole.log");
    expect_ok(TRAIN "--steps 5 --out $TMP/parts --log $TMP/parts.log");
    expect_ok(TRAIN "--resume --out $TMP/parts --log $TMP/parts.log");
    expect_equal_runs("whole", "parts");
    expect_ok(TRAIN "--out $TMP/tight --budget min");
    expect_equal_runs("whole", "tight");
}

static void test_device(void)
{
    expect_ok(SIMULATED TRAIN "--device cuda --exact --out $TMP/device --log $TMP/device.log");
    expect_equal_steps("whole", "device");
}

static double evaluated(const char *options)
{
    json_t *o =
        run_json(0, "$SCRIMP eval $TMP/model.scrimp --checkpoint $TMP/whole --json %s", options);
    double loss = o ? json_get_number(o, "loss") : 0;
    json_decref(o);
    return loss;
}

/* What is evaluated while it trains is what the checkpoint's running means give. */
static void test_running_means(void)
{
    double held_out = last_in_log(in_tmp("whole.log"), "val_loss"), means = evaluated("");
    char text[80];
    snprintf(text, sizeof text, "%.9g, %.9g", held_out, means);
    EXPECT(held_out == means, text);
    EXPECT(evaluated("--no-ema") != means, text);
}

static double held_out_loss(const char *log, int step)
{
    char *text = read_text(in_tmp(log), NULL);
    double loss = -1;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        json_t *o = json_loads(line, 0, NULL);
        if (json_integer_value(json_object_get(o, "step")) == step &&
            json_object_get(o, "val_loss"))
            loss = json_get_number(o, "val_loss");
        json_decref(o);
    }
    free(text);
    return loss;
}

/* A schedule times a number, whatever it is made of: by a power of two, of the same bits. */
static void test_scaled_schedules(void)
{
    static const char *const same[][2] = {
        {"0.5 * wsd(0.02, warmup = 4)", "wsd(0.01, warmup = 4)"},
        {"wsd(0.02) / 2", "wsd(0.01)"},
        {"cosine(0.005, warmup = 2) * 2", "cosine(0.01, warmup = 2)"}};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        write_model(same[i][0]);
        expect_ok(TRAIN "--overwrite --out $TMP/scaled --log $TMP/scaled.log");
        write_model(same[i][1]);
        expect_ok(TRAIN "--overwrite --out $TMP/plain --log $TMP/plain.log");
        expect_equal_steps("scaled", "plain");
    }
}

/* After step 4 the rate is 0, so that the loss falls no more: two evaluations later the run ends,
 * also one that was interrupted between them. */
static void test_patience(void)
{
    FILE *f = fopen(in_tmp("model.scrimp"), "w");
    if (!f)
        abort();
    fputs("model m(x: f32[8, 12]) { return x |> fc: linear(5) }\n"
          "train {\n"
          "  batch = synthetic(x = f32[8, 12], y = i32[8])\n"
          "  loss = cross_entropy(m(batch.x), batch.y)\n"
          "  optim = sgd(lr = where(step < 4, 0.05, 0))\n"
          "  held_out = 80\n  eval_every = 4\n  patience = 2\n  steps = 100\n"
          "}\n",
          f);
    fclose(f);
    expect_run(0, "ended after step 12: no lower held-out loss than",
               TRAIN "--keep-best --out $TMP/patient --log $TMP/patient.log");
    double best = held_out_loss("patient.log", 4);
    json_t *o = run_json(0, "$SCRIMP eval $TMP/model.scrimp --checkpoint $TMP/patient/best --json");
    EXPECT(o && json_get_number(o, "loss") == best, "the best");
    json_decref(o);
    expect_ok(TRAIN "--steps 9 --keep-best --out $TMP/again");
    expect_run(0, "ended after step 12", TRAIN "--resume --keep-best --out $TMP/again");
    expect_equal_runs("patient", "again");
    expect_run(0, "ended after step 12", TRAIN "--resume --out $TMP/again");
    expect_run(1, "--keep-best needs the run's folder", TRAIN "--keep-best");
}

static void test_refused(void)
{
    write_model("log(step)");
    expect_run(1, "the learning rate is -inf after step 0 of 12", TRAIN);
    write_model("0.01 - step / 1000");
    expect_run(1, "error[E516]: the learning rate is -0.001 after step 11", TRAIN);
}

int main(void)
{
    e2e_begin();
    write_model("0.002 * (1 - progress) * min((step + 1) / 3, 1)");
    test_resume();
    test_device();
    test_running_means();
    test_patience();
    test_scaled_schedules();
    test_refused();
    return e2e_end();
}
