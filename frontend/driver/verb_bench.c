/* SPDX-License-Identifier: GPL-3.0-or-later */
/* bench: what the generated code achieves on this machine. */
#include "frontend/driver/cli_build.h"
#include "frontend/driver/cli_file.h"
#include "frontend/driver/cli_measure.h"
#include "frontend/driver/cli_trace.h"

#include "codegen/build/flops_peak.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEFAULT_STEPS = 9 };

/* Of all steps: the median, and what the middle half of them lies between. */
typedef struct Time {
    double median, low, high;
} Time;

/* Calls of one label together. */
typedef struct KernelRow {
    const char *label;
    int64_t calls; /* a step */
    Time time;
    double flops, bytes;
} KernelRow;

typedef struct Bench {
    Cli *cli;
    Measurement m;
    Time step, outside; /* outside: between the kernels */
    double rest;        /* the median step less all other medians */
    double peak_gflops;
    double predicted_seconds; /* 0: no prediction */
    KernelRow *rows;
    int n_rows;
} Bench;

/* Sorts the seconds of n steps. */
static Time time_of(double *seconds, int64_t n)
{
    measurement_sort(seconds, n);
    return (Time){seconds[n / 2], seconds[n / 4], seconds[n - 1 - n / 4]};
}

/* --- rows --- */

static int by_seconds(const void *a, const void *b)
{
    const KernelRow *x = a, *y = b;
    if (x->time.median != y->time.median)
        return x->time.median > y->time.median ? -1 : 1;
    return strcmp(x->label, y->label);
}

/* The row of every call. */
static int *name_rows(Bench *b)
{
    const Step *step = b->m.running.session.step;
    Map index = map_new(b->cli->pool);
    int *row_of = POOL_ARRAY(b->cli->pool, (size_t)step->n_calls, int);
    b->rows = POOL_ARRAY(b->cli->pool, (size_t)step->n_calls, KernelRow);
    for (int i = 0; i < step->n_calls; i++) {
        const Call *c = &step->calls[i];
        const uint64_t *found = map_find(&index, c->label);
        int row = row_of[i] = found ? (int)*found : b->n_rows++;
        if (!found)
            map_set(&index, c->label, (uint64_t)row);
        b->rows[row].label = c->label;
        b->rows[row].calls++;
        b->rows[row].flops += c->flops;
        b->rows[row].bytes += c->bytes;
    }
    return row_of;
}

/* The one statistic of steps, rows and what is between kernels.  Medians do not add up where steps
 * are disturbed in different places: the rest says by how much. */
static void time_rows(Bench *b)
{
    int64_t n = b->m.times.n;
    int calls = b->m.times.n_calls;
    const int *row_of = name_rows(b);
    double *outside = POOL_ARRAY(b->cli->pool, (size_t)n, double);
    double *row = POOL_ARRAY(b->cli->pool, (size_t)n * (size_t)(b->n_rows + 1), double);
    for (int64_t k = 0; k < n; k++) {
        const double *seconds = b->m.times.call + k * calls;
        outside[k] = b->m.times.step[k];
        for (int i = 0; i < calls; i++) {
            row[row_of[i] * n + k] += seconds[i];
            outside[k] -= seconds[i];
        }
    }
    b->step = time_of(b->m.times.step, n);
    b->outside = time_of(outside, n);
    b->rest = b->step.median - b->outside.median;
    for (int r = 0; r < b->n_rows; r++) {
        b->rows[r].time = time_of(row + r * n, n);
        b->rest -= b->rows[r].time.median;
    }
    qsort(b->rows, (size_t)b->n_rows, sizeof *b->rows, by_seconds);
}

static double total_flops(const Bench *b)
{
    double total = 0;
    for (int i = 0; i < b->n_rows; i++)
        total += b->rows[i].flops;
    return total;
}

static double rate(double amount, double seconds)
{
    return seconds > 0 ? amount / seconds / 1e9 : 0;
}

/* --- output --- */

static json_t *time_json(const Time *t)
{
    return json_pack("{s:f,s:f,s:f}", "seconds", t->median, "seconds_low", t->low, "seconds_high",
                     t->high);
}

static json_t *row_json(const KernelRow *r)
{
    json_t *o = json_pack("{s:s,s:I}", "name", r->label, "calls", (json_int_t)r->calls);
    json_object_update_new(o, time_json(&r->time));
    json_object_set_new(o, "gflops", json_real(rate(r->flops, r->time.median)));
    json_object_set_new(o, "gbytes_per_second", json_real(rate(r->bytes, r->time.median)));
    return o;
}

/* 0 where the peak is not known. */
static double percent_of_peak(const Bench *b, double gflops)
{
    return b->peak_gflops > 0 ? 100 * gflops / b->peak_gflops : 0;
}

static json_t *device_json(const CudaDevice *d)
{
    CudaMemory m = cuda_device_memory(d);
    return json_pack("{s:s,s:s,s:I,s:I,s:I,s:I,s:I}", "name", cuda_device_name(d), "arch",
                     cuda_device_arch(d), "total_bytes", (json_int_t)m.total, "arena_bytes",
                     (json_int_t)m.arena, "staging_bytes", (json_int_t)m.staging,
                     "kernels_and_graphs_bytes", (json_int_t)m.beside, "in_use_before_bytes",
                     (json_int_t)m.at_start);
}

static void print_json(const Bench *b)
{
    double gflops = rate(total_flops(b), b->step.median);
    json_t *kernels = json_array();
    for (int i = 0; i < b->n_rows; i++)
        json_array_append_new(kernels, row_json(&b->rows[i]));
    json_t *o = json_pack(
        "{s:f,s:f,s:f,s:I,s:I,s:f,s:f,s:f,s:i,s:o}", "seconds_per_step", b->step.median,
        "seconds_per_step_low", b->step.low, "seconds_per_step_high", b->step.high, "steps",
        (json_int_t)b->m.times.n, "arena_bytes", (json_int_t)b->m.running.session.plan->arena_bytes,
        "gflops", gflops, "percent_of_peak", percent_of_peak(b, gflops), "peak_gflops",
        b->peak_gflops, "threads", threads_count(b->m.running.machine.threads), "kernels", kernels);
    if (b->m.running.machine.cuda) {
        json_object_set_new(o, "device", device_json(b->m.running.machine.cuda));
    } else {
        json_object_set_new(o, "outside_kernels", time_json(&b->outside));
        json_object_set_new(o, "rest_seconds", json_real(b->rest));
    }
    if (b->predicted_seconds > 0)
        json_object_set_new(o, "predicted_seconds_per_step", json_real(b->predicted_seconds));
    cli_print_json(o);
}

static void print_summary(const Bench *b)
{
    double gflops = rate(total_flops(b), b->step.median);
    int threads = threads_count(b->m.running.machine.threads);
    printf("%.3f ms/step (%.3f to %.3f), %.1f GFLOP/s", 1e3 * b->step.median, 1e3 * b->step.low,
           1e3 * b->step.high, gflops);
    if (b->peak_gflops > 0)
        printf(", %.1f%% of the measured peak (%.1f GFLOP/s, %d thread%s)",
               percent_of_peak(b, gflops), b->peak_gflops, threads, threads == 1 ? "" : "s");
    printf("\nmedians of %lld steps, and what the middle half of them lies between\n\n",
           (long long)b->m.times.n);
    if (b->m.running.machine.cuda)
        printf("device memory: %s\n\n", machine_memory_text(b->cli->pool, &b->m.running.machine));
    if (b->predicted_seconds > 0)
        printf("%.3f ms predicted by the measured costs of its kernels: %+.1f%%\n\n",
               1e3 * b->predicted_seconds, 100 * (b->predicted_seconds / b->step.median - 1));
}

static void print_time(const Bench *b, const char *label, const char *calls, const Time *t)
{
    printf("%-44s %6s %10.4f %10.4f %10.4f %5.1f%%", label, calls, 1e3 * t->median, 1e3 * t->low,
           1e3 * t->high, 100 * t->median / b->step.median);
}

static void print_table(const Bench *b)
{
    print_summary(b);
    printf("%-44s %6s %10s %10s %10s %6s %9s %7s %8s\n", "kernel", "calls", "ms", "from", "to", "%",
           "GFLOP/s", "% peak", "GB/s");
    for (int i = 0; i < b->n_rows; i++) {
        const KernelRow *r = &b->rows[i];
        double g = rate(r->flops, r->time.median);
        print_time(b, r->label, pool_printf(b->cli->pool, "%lld", (long long)r->calls), &r->time);
        printf(" %9.1f %6.1f%% %8.1f\n", g, percent_of_peak(b, g), rate(r->bytes, r->time.median));
    }
    if (b->m.running.machine.cuda)
        return; /* kernels were timed one by one, the step as a whole */
    print_time(b, "outside kernels", "", &b->outside);
    printf("\n%-44s %6s %10.4f %10s %10s %5.1f%%\n", "rest: the median step less these medians", "",
           1e3 * b->rest, "", "", 100 * b->rest / b->step.median);
}

/* All threads at the peak of one core, measured in this run; of a device it is not known. */
static bool measure_peak(Bench *b)
{
    const char *error = NULL;
    if (b->m.running.machine.cuda)
        return true;
    double one =
        codegen_measure_peak_gflops(b->cli->pool, target_find(b->cli->build.march), &error);
    if (one <= 0)
        return cli_error(b->cli, EXIT_USER, "E801", NULL, "%s", error) == EXIT_OK;
    b->peak_gflops = one * threads_count(b->m.running.machine.threads);
    return true;
}

static bool measure(Bench *b)
{
    const Cli *cli = b->cli;
    if ((cli->run.trace && !trace_fits(b->cli, &b->m, cli->run.steps)) ||
        !measurement_run(&b->m, cli->run.steps, cli->run.trace != NULL) || !measure_peak(b))
        return false;
    time_rows(b);
    return true;
}

/* `--trace -` prints nothing else. */
static ExitCode print(const Bench *b)
{
    const Cli *cli = b->cli;
    ExitCode code = cli->run.trace ? trace_write(&b->m, cli->run.trace) : EXIT_OK;
    if (code != EXIT_OK || cli_is_standard_output(cli->run.trace))
        return code;
    if (cli->output.json)
        print_json(b);
    else
        print_table(b);
    return EXIT_OK;
}

ExitCode verb_bench(Cli *cli)
{
    if (!cli_one_writes_output(cli, "--trace", cli->run.trace))
        return EXIT_USER;
    const Ast *ast = cli_parse_model(cli);
    if (!ast)
        return EXIT_USER;
    if (!cli->run.steps)
        cli->run.steps = DEFAULT_STEPS;
    Program program;
    ProgramOptions o = {.mode = FRONTEND_TRAIN};
    ExitCode code = cli_build(cli, ast, &o, &program);
    if (code != EXIT_OK)
        return code;
    Bench b = {.cli = cli};
    if (program.report.cost && program.report.cost->in_seconds)
        b.predicted_seconds = program.report.step_cost;
    if (!measurement_open(cli, &program, &b.m))
        return machine_failure(cli);
    code = measure(&b) ? print(&b) : machine_failure(cli);
    measurement_close(&b.m);
    return code;
}
