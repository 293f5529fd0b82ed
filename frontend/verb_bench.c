/* bench: what the generated code achieves on this machine. */
#include "frontend/cli_session.h"

#include "codegen/peak.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEFAULT_STEPS = 5, WARM_UP_STEPS = 2 };

/* Calls of one label together; seconds are those of the fastest run of each call. */
typedef struct KernelRow {
    const char *label;
    int64_t calls; /* a step */
    double seconds, flops, bytes;
} KernelRow;

typedef struct Bench {
    Cli *cli;
    Session session;
    Arena arena;
    Threads *threads;
    RtProfile profile;
    double seconds_per_step, peak_gflops;
    KernelRow *rows;
    int n_rows;
} Bench;

static double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_seconds(const void *a, const void *b)
{
    const KernelRow *x = a, *y = b;
    if (x->seconds != y->seconds)
        return x->seconds > y->seconds ? -1 : 1;
    return strcmp(x->label, y->label);
}

static void collect_rows(Bench *b, const double *seconds)
{
    const Step *step = b->session.step;
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
    cli_print_json(json_pack("{s:f,s:f,s:f,s:f,s:i,s:o}", "seconds_per_step", b->seconds_per_step,
                             "gflops", gflops, "percent_of_peak", 100 * gflops / b->peak_gflops,
                             "peak_gflops", b->peak_gflops, "threads", threads_count(b->threads),
                             "kernels", kernels));
}

static void print_table(const Bench *b)
{
    double gflops = rate(total_flops(b), b->seconds_per_step);
    printf("%.3f ms/step, %.1f GFLOP/s, %.1f%% of the measured peak (%.1f GFLOP/s, %d threads)\n\n",
           1e3 * b->seconds_per_step, gflops, 100 * gflops / b->peak_gflops, b->peak_gflops,
           threads_count(b->threads));
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

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The fastest of several runs of every call: other programs on the machine only ever add time. */
static double *fastest_calls(Bench *b, int64_t steps)
{
    int n = b->session.step->n_calls;
    double *best = POOL_ARRAY(b->cli->pool, (size_t)n, double);
    b->session.context.profile = &b->profile;
    for (int64_t i = 0; i < steps; i++) {
        memset(b->profile.seconds, 0, (size_t)n * sizeof *b->profile.seconds);
        session_run(&b->session, 1e-4, i + steps, 0, 1);
        for (int k = 0; k < n; k++)
            if (i == 0 || b->profile.seconds[k] < best[k])
                best[k] = b->profile.seconds[k];
    }
    return best;
}

/* The median step without measuring kernels, then as many with it. */
static bool measure(Bench *b, const Dataset *data)
{
    int64_t steps = b->cli->steps;
    double *seconds = POOL_ARRAY(b->cli->pool, (size_t)steps, double);
    if (!session_fill(&b->session, data, 0, false))
        return false;
    for (int64_t i = -WARM_UP_STEPS; i < steps; i++) {
        double start = now_seconds();
        session_run(&b->session, 1e-4, i + WARM_UP_STEPS, 0, 1);
        if (i >= 0)
            seconds[i] = now_seconds() - start;
    }
    qsort(seconds, (size_t)steps, sizeof *seconds, by_value);
    b->seconds_per_step = seconds[steps / 2];
    collect_rows(b, fastest_calls(b, steps));
    return true;
}

static bool bench_open(Bench *b, const Program *program)
{
    RtError err;
    Cli *cli = b->cli;
    if (!session_compile(cli, program, &b->session))
        return false;
    b->threads = threads_new((int)cli->threads, &err);
    if (!b->threads || !arena_map(&b->arena, program->plan->arena_bytes, &err)) {
        cli_error(cli, EXIT_USER, "E804", NULL, "%s", err.message);
        return false;
    }
    int n = b->session.step->n_calls;
    b->profile = (RtProfile){.n = n,
                             .seconds = POOL_ARRAY(cli->pool, (size_t)n, double),
                             .count = POOL_ARRAY(cli->pool, (size_t)n, int64_t)};
    session_attach(&b->session, b->arena.base, b->threads, NULL);
    return session_initialize(&b->session, 1);
}

/* All threads at the peak of one core, measured in this run. */
static bool measure_peak(Bench *b)
{
    const char *error = NULL;
    double one = codegen_measure_peak_gflops(b->cli->pool, target_find(b->cli->march), &error);
    if (one <= 0)
        return cli_error(b->cli, EXIT_USER, "E801", NULL, "%s", error) == EXIT_OK;
    b->peak_gflops = one * threads_count(b->threads);
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
    Dataset *data = session_open_data(cli, program.graph, true, 1);
    bool ok = data && bench_open(&b, &program) && measure(&b, data);
    ok = ok && measure_peak(&b);
    if (ok && cli->json)
        print_json(&b);
    else if (ok)
        print_table(&b);
    threads_free(b.threads);
    if (b.arena.base)
        arena_unmap(&b.arena);
    session_close(&b.session);
    dataset_close(data);
    return ok ? EXIT_OK : EXIT_USER;
}
