/* bench: what the generated code achieves on this machine. */
#include "frontend/cli_measure.h"

#include "codegen/peak.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEFAULT_STEPS = 5 };

/* Calls of one label together; seconds are those of the fastest run of each call. */
typedef struct KernelRow {
    const char *label;
    int64_t calls; /* a step */
    double seconds, flops, bytes;
} KernelRow;

typedef struct Bench {
    Cli *cli;
    Measurement m;
    double seconds_per_step, peak_gflops;
    double predicted_seconds; /* 0: nobody predicts */
    KernelRow *rows;
    int n_rows;
} Bench;

static int by_seconds(const void *a, const void *b)
{
    const KernelRow *x = a, *y = b;
    if (x->seconds != y->seconds)
        return x->seconds > y->seconds ? -1 : 1;
    return strcmp(x->label, y->label);
}

static void collect_rows(Bench *b, const double *seconds)
{
    const Step *step = b->m.host.session.step;
    Map index = map_new(b->cli->pool);
    b->rows = POOL_ARRAY(b->cli->pool, (size_t)step->n_calls, KernelRow);
    for (int i = 0; i < step->n_calls; i++) {
        const Call *c = &step->calls[i];
        const uint64_t *found = map_find(&index, c->label);
        int row = found ? (int)*found : b->n_rows++;
        if (!found)
            map_set(&index, c->label, (uint64_t)row);
        b->rows[row].label = c->label;
        b->rows[row].calls++;
        b->rows[row].seconds += seconds[i];
        b->rows[row].flops += c->flops;
        b->rows[row].bytes += c->bytes;
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

static void print_json(const Bench *b)
{
    double gflops = rate(total_flops(b), b->seconds_per_step);
    json_t *kernels = json_array();
    for (int i = 0; i < b->n_rows; i++) {
        const KernelRow *r = &b->rows[i];
        json_array_append_new(kernels, json_pack("{s:s,s:I,s:f,s:f,s:f}", "name", r->label, "calls",
                                                 (json_int_t)r->calls, "seconds", r->seconds,
                                                 "gflops", rate(r->flops, r->seconds),
                                                 "gbytes_per_second", rate(r->bytes, r->seconds)));
    }
    json_t *o =
        json_pack("{s:f,s:f,s:f,s:f,s:i,s:o}", "seconds_per_step", b->seconds_per_step, "gflops",
                  gflops, "percent_of_peak", 100 * gflops / b->peak_gflops, "peak_gflops",
                  b->peak_gflops, "threads", threads_count(b->m.host.threads), "kernels", kernels);
    if (b->predicted_seconds > 0)
        json_object_set_new(o, "predicted_seconds_per_step", json_real(b->predicted_seconds));
    cli_print_json(o);
}

static void print_table(const Bench *b)
{
    double gflops = rate(total_flops(b), b->seconds_per_step);
    printf("%.3f ms/step, %.1f GFLOP/s, %.1f%% of the measured peak (%.1f GFLOP/s, %d threads)\n\n",
           1e3 * b->seconds_per_step, gflops, 100 * gflops / b->peak_gflops, b->peak_gflops,
           threads_count(b->m.host.threads));
    if (b->predicted_seconds > 0)
        printf("%.3f ms predicted by the measured costs of its kernels: %+.1f%%\n\n",
               1e3 * b->predicted_seconds, 100 * (b->predicted_seconds / b->seconds_per_step - 1));
    printf("%-44s %6s %10s %6s %9s %7s %8s\n", "kernel", "calls", "ms", "%", "GFLOP/s", "% peak",
           "GB/s");
    for (int i = 0; i < b->n_rows; i++) {
        const KernelRow *r = &b->rows[i];
        double g = rate(r->flops, r->seconds);
        printf("%-44s %6lld %10.4f %5.1f%% %9.1f %6.1f%% %8.1f\n", r->label, (long long)r->calls,
               1e3 * r->seconds, 100 * r->seconds / b->seconds_per_step, g,
               100 * g / b->peak_gflops, rate(r->bytes, r->seconds));
    }
}

/* All threads at the peak of one core, measured in this run. */
static bool measure_peak(Bench *b)
{
    const char *error = NULL;
    double one = codegen_measure_peak_gflops(b->cli->pool, target_find(b->cli->march), &error);
    if (one <= 0)
        return cli_error(b->cli, EXIT_USER, "E801", NULL, "%s", error) == EXIT_OK;
    b->peak_gflops = one * threads_count(b->m.host.threads);
    return true;
}

ExitCode verb_bench(Cli *cli)
{
    const Ast *ast = cli_parse_model(cli);
    if (!ast)
        return EXIT_USER;
    if (!cli->steps)
        cli->steps = DEFAULT_STEPS;
    Program program;
    ProgramOptions o = {.mode = FRONTEND_TRAIN,
                        .budget = cli->budget,
                        .solver = cli->solver,
                        .objective = cli->objective};
    ExitCode code = cli_build(cli, ast, &o, &program);
    if (code != EXIT_OK)
        return code;
    Bench b = {.cli = cli};
    if (program.report.cost && program.report.cost->in_seconds)
        b.predicted_seconds = program.report.step_cost;
    if (!measurement_open(cli, &program, &b.m))
        return EXIT_USER;
    b.seconds_per_step = measurement_steps(&b.m, cli->steps);
    collect_rows(&b, measurement_calls(&b.m, cli->steps, 0));
    bool ok = measure_peak(&b);
    if (ok && cli->json)
        print_json(&b);
    else if (ok)
        print_table(&b);
    measurement_close(&b.m);
    return ok ? EXIT_OK : EXIT_USER;
}
