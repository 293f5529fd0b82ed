/* SPDX-License-Identifier: GPL-3.0-or-later */
/* bench: one statistic for the step, its kernels and what is between them, rows that add up, how
 * long threads wait, and where in the model each kernel is. */
#include "e2e.h"
#include "tiny_model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The median lies between the quartiles. */
static double median_of(const json_t *o, const char *what)
{
    double median = json_get_number(o, "seconds");
    EXPECT(json_get_number(o, "seconds_low") <= median, what);
    EXPECT(json_get_number(o, "seconds_high") >= median, what);
    return median;
}

/* Returns whether there is a spread. */
static bool expect_sum(int steps)
{
    json_t *o = run_json(0, "$SCRIMP bench $EXAMPLES/mlp.scrimp -D N=16 --steps %d --json", steps);
    json_t *kernels = json_object_get(o, "kernels"),
           *outside = json_object_get(o, "outside_kernels");
    double step = json_get_number(o, "seconds_per_step"), sum = 0;
    double low = json_get_number(o, "seconds_per_step_low"),
           high = json_get_number(o, "seconds_per_step_high");
    EXPECT(json_get_number(o, "steps") == steps, "steps");
    EXPECT(low <= step && step <= high, "quartiles of the step");
    EXPECT(json_array_size(kernels) > 5, "kernels");
    for (size_t i = 0; i < json_array_size(kernels); i++)
        sum += median_of(json_array_get(kernels, i), "kernel");
    double between = median_of(outside, "outside");
    double rest = json_get_number(o, "rest_seconds");
    EXPECT(between > 0, "a step is more than its kernels");
    EXPECT(fabs(sum + between + rest - step) < 1e-6 * step, "rows do not add up");
    /* Of one step there is one figure of each. */
    EXPECT(steps > 1 || (low == high && fabs(rest) < 1e-6 * step), "one step");
    json_decref(o);
    return high > low;
}

static void test_table(void)
{
    Result r = run("$SCRIMP bench $EXAMPLES/mlp.scrimp -D N=16 --threads 1");
    EXPECT(r.code == 0 && strstr(r.out, "medians of 9 steps"), r.out);
    EXPECT(strstr(r.out, " waiting ") && strstr(r.out, "\nthreads wait "), r.out);
    EXPECT(strstr(r.out, "\noutside kernels ") && strstr(r.out, "\nrest: "), r.out);
    result_free(&r);
}

/* A thread without work waits, through the whole of a call that has one task; one thread alone has
 * nobody to wait for. */
static void expect_waiting(int threads)
{
    json_t *o = run_json(0, "$SCRIMP bench $EXAMPLES/mlp.scrimp -D N=64 --threads %d --json",
                         threads),
           *kernels = json_object_get(o, "kernels");
    double all = json_get_number(o, "waiting_seconds"), of_fill = -1;
    for (size_t i = 0; i < json_array_size(kernels); i++) {
        const json_t *row = json_array_get(kernels, i);
        double waiting = json_get_number(row, "waiting_seconds");
        EXPECT(waiting >= 0 && waiting <= json_get_number(row, "seconds_high"), "waiting");
        if (strcmp(json_string_value(json_object_get(row, "name")), "fill") == 0)
            of_fill = waiting / json_get_number(row, "seconds");
    }
    double part = all / json_get_number(o, "seconds_per_step");
    EXPECT(threads > 1 ? all > 0 : part < 0.2, "one thread waits");
    EXPECT(threads == 1 || of_fill > 0.4, "a call of one task has nobody waiting");
    json_decref(o);
}

static const json_t *row_named(const json_t *bench, const char *start)
{
    const json_t *kernels = json_object_get(bench, "kernels");
    for (size_t i = 0; i < json_array_size(kernels); i++) {
        const json_t *row = json_array_get(kernels, i);
        if (strncmp(json_string_value(json_object_get(row, "name")), start, strlen(start)) == 0)
            return row;
    }
    EXPECT(false, start);
    return NULL;
}

static void expect_place(const json_t *bench, const char *kernel, int calls, const char *path,
                         int line)
{
    const json_t *row = row_named(bench, kernel);
    const char *said = json_string_value(json_object_get(row, "path"));
    EXPECT(said && strcmp(said, path) == 0, said);
    EXPECT(json_get_number(row, "line") == line, kernel);
    EXPECT(json_get_number(row, "calls") == calls, kernel);
}

/* Three layers that a loop makes, of two sizes each, and one behind them. */
static void write_layers(void)
{
    FILE *f = fopen(in_tmp("layers.scrimp"), "w");
    fputs("block Pair(x) { return x |> up: linear(24) |> relu() |> down: linear(20) }\n"
          "model net(x: f32[8, 20]) {\n"
          "  for i in 0..3 { x = x |> h[i]: Pair() }\n"
          "  return x |> head: linear(3)\n"
          "}\n"
          "train {\n"
          "  batch = synthetic(x = f32[8, 20], y = f32[8, 3])\n"
          "  loss  = mse(net(batch.x), batch.y)\n"
          "  optim = sgd(lr = 0.1)\n"
          "  steps = 5\n"
          "}\n",
          f);
    fclose(f);
}

static void test_places(void)
{
    write_layers();
    json_t *o = run_json(0, "$SCRIMP bench $TMP/layers.scrimp --steps 2 --json");
    json_t *plan = run_json(0, "$SCRIMP plan $TMP/layers.scrimp --json");
    expect_place(o, "matmul 24x20x8", 3, "h.*.up", 1);
    expect_place(o, "matmul 3x20x8", 1, "head", 4);
    const json_t *row = row_named(o, "matmul 24x20x8");
    EXPECT(json_get_number(row, "flops") == 3 * 2.0 * 24 * 20 * 8 &&
               json_get_number(row, "bytes") > 0,
           "flops");
    EXPECT(fabs(json_get_number(row, "gflops") * json_get_number(row, "seconds") * 1e9 /
                    json_get_number(row, "flops") -
                1) < 1e-6,
           "flops are not of this time");
    EXPECT(json_get_number(o, "peak_bytes") == json_get_number(plan, "peak_bytes"), "peak");
    EXPECT(json_get_number(o, "persistent_bytes") == json_get_number(plan, "persistent_bytes"),
           "persistent");
    EXPECT(json_get_number(o, "peak_gbytes_per_second") > 0, "no bandwidth");
    expect_said(0, "h.*.up:1", "$SCRIMP bench $TMP/layers.scrimp --steps 1");
    json_decref(o);
    json_decref(plan);
}

/* A kernel that two lines of a block call names the block once: without lines nothing tells them
 * apart. */
static void test_places_once(void)
{
    json_t *o = run_json(0, "$SCRIMP bench $EXAMPLES/chargpt.scrimp -D N=2 -D T=16 --steps 1 "
                            "--no-attention --json");
    expect_place(o, "transpose", 32, "h.*.attn", 13);
    json_decref(o);
}

/* Of a loop's body, a call is counted once a step, and is where the body is. */
static void test_loop(void)
{
    write_loop_model(40);
    json_t *o = run_json(0, "$SCRIMP bench $TMP/loop.scrimp --steps 2 --json");
    expect_place(o, "linear 4x6x6", 2 * 40, "rnn, rnn.hh", 1); /* forward, backward */
    expect_place(o, "matmul 6x6x4", 40, "rnn", 2);
    json_decref(o);
}

int main(void)
{
    e2e_begin();
    expect_sum(1);
    EXPECT(expect_sum(20), "20 steps took the same time");
    test_table();
    expect_waiting(1);
    expect_waiting(2);
    test_places();
    test_places_once();
    test_loop();
    return e2e_end();
}
