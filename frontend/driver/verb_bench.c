/* SPDX-License-Identifier: GPL-3.0-or-later */
/* bench: what the generated code achieves on this machine. */
#include "frontend/driver/cli_against.h"
#include "frontend/driver/cli_build.h"
#include "frontend/driver/cli_file.h"
#include "frontend/driver/cli_profile.h"
#include "frontend/driver/cli_trace.h"

#include <stdio.h>

typedef struct Bench {
    Cli *cli;
    Measurement m;
    StepProfile profile;
    double predicted_seconds; /* 0: no prediction */
} Bench;

/* --- output --- */

static json_t *time_json(const Spread *t)
{
    return json_pack("{s:f,s:f,s:f}", "seconds", t->median, "seconds_low", t->low, "seconds_high",
                     t->high);
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

/* 0 where the peak is not known. */
static double percent_of_peak(const Bench *b, double gflops)
{
    return percent(gflops, b->profile.peak_gflops);
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
    const StepProfile *p = &b->profile;
    const MemPlan *plan = b->m.running.session.plan;
    double gflops = profile_rate(p->flops, p->step.median);
    json_t *o = json_pack(
        "{s:f,s:f,s:f,s:I,s:I,s:I,s:I,s:f,s:f,s:f,s:f,s:i,s:o}", "seconds_per_step", p->step.median,
        "seconds_per_step_low", p->step.low, "seconds_per_step_high", p->step.high, "steps",
        (json_int_t)p->steps, "arena_bytes", (json_int_t)plan->arena_bytes, "peak_bytes",
        (json_int_t)plan->peak_bytes, "persistent_bytes", (json_int_t)plan->persistent_bytes,
        "gflops", gflops, "percent_of_peak", percent_of_peak(b, gflops), "peak_gflops",
        p->peak_gflops, "peak_gbytes_per_second", p->peak_gbytes_per_second, "threads",
        threads_count(b->m.running.machine.threads), "kernels", profile_kernels_json(p));
    if (b->m.running.machine.cuda) {
        json_object_set_new(o, "device", device_json(b->m.running.machine.cuda));
    } else {
        json_object_set_new(o, "outside_kernels", time_json(&p->outside));
        json_object_set_new(o, "rest_seconds", json_real(p->rest_seconds));
        json_object_set_new(o, "waiting_seconds", json_real(p->waiting));
    }
    if (b->predicted_seconds > 0)
        json_object_set_new(o, "predicted_seconds_per_step", json_real(b->predicted_seconds));
    cli_print_json(o);
}

/* What the threads of this machine can do, measured. */
static void print_peaks(const Bench *b, double gflops)
{
    const StepProfile *p = &b->profile;
    int threads = threads_count(b->m.running.machine.threads);
    if (p->peak_gflops <= 0)
        return;
    printf(", %.1f%% of the measured peak (%.1f GFLOP/s, %d thread%s", percent_of_peak(b, gflops),
           p->peak_gflops, threads, threads == 1 ? "" : "s");
    if (p->peak_gbytes_per_second > 0)
        printf("; from and to memory %.1f GB/s", p->peak_gbytes_per_second);
    fputs(")", stdout);
}

static void print_memory(const Bench *b)
{
    Pool *pool = b->cli->pool;
    const MemPlan *plan = b->m.running.session.plan;
    printf("memory: %s at the peak, %s of it persistent; the arena has %s\n",
           bytes_text(pool, plan->peak_bytes), bytes_text(pool, plan->persistent_bytes),
           bytes_text(pool, plan->arena_bytes));
    if (b->m.running.machine.cuda)
        printf("device memory: %s\n", machine_memory_text(pool, &b->m.running.machine));
    putchar('\n');
}

static void print_summary(const Bench *b)
{
    const StepProfile *p = &b->profile;
    double gflops = profile_rate(p->flops, p->step.median);
    printf("%.3f ms/step (%.3f to %.3f), %.1f GFLOP/s", 1e3 * p->step.median, 1e3 * p->step.low,
           1e3 * p->step.high, gflops);
    print_peaks(b, gflops);
    printf("\nmedians of %lld steps, and what the middle half of them lies between\n",
           (long long)p->steps);
    if (p->waiting >= 0)
        printf("threads wait %.1f%% of a step within kernels: for the slowest, or without work\n",
               percent(p->waiting, p->step.median));
    print_memory(b);
    if (b->predicted_seconds > 0)
        printf("%.3f ms predicted by the measured costs of its kernels: %+.1f%%\n\n",
               1e3 * b->predicted_seconds, 100 * (b->predicted_seconds / p->step.median - 1));
}

static void print_time(const Bench *b, const char *label, const char *calls, const Spread *t)
{
    printf("%-44s %6s %10.4f %10.4f %10.4f %5.1f%%", label, calls, 1e3 * t->median, 1e3 * t->low,
           1e3 * t->high, percent(t->median, b->profile.step.median));
}

static void print_waiting(const StepProfile *p, const KernelRow *r)
{
    if (p->waiting < 0)
        printf(" %8s", "-");
    else
        printf(" %7.1f%%", percent(r->waiting, r->time.median));
}

static void print_table(const Bench *b)
{
    const StepProfile *p = &b->profile;
    print_summary(b);
    printf("%-44s %6s %10s %10s %10s %6s %8s %9s %7s %8s  %s\n", "kernel", "calls", "ms", "from",
           "to", "%", "waiting", "GFLOP/s", "% peak", "GB/s", "where");
    for (int i = 0; i < p->n_kernels; i++) {
        const KernelRow *r = &p->kernel[i];
        double g = profile_rate(r->flops, r->time.median);
        print_time(b, r->name, pool_printf(b->cli->pool, "%lld", (long long)r->calls), &r->time);
        print_waiting(p, r);
        printf(" %9.1f %6.1f%% %8.1f  %s\n", g, percent_of_peak(b, g),
               profile_rate(r->bytes, r->time.median), r->where);
    }
    if (b->m.running.machine.cuda)
        return; /* kernels were timed one by one, the step as a whole */
    print_time(b, "outside kernels", "", &p->outside);
    printf("\n%-44s %6s %10.4f %10s %10s %5.1f%%\n", "rest: the median step less these medians", "",
           1e3 * p->rest_seconds, "", "", percent(p->rest_seconds, p->step.median));
}

static bool measure(Bench *b)
{
    const Cli *cli = b->cli;
    if ((cli->run.trace && !trace_fits(b->cli, &b->m, cli->run.steps)) ||
        !measurement_run(&b->m, cli->run.steps, cli->run.trace ? DETAIL_SPANS : DETAIL_WAITING))
        return false;
    profile_add_up(&b->m, &b->profile);
    return profile_peaks(&b->m, &b->profile);
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
    if (!cli_one_writes_output(cli, "--trace", cli->run.trace) ||
        !cli_can_write(cli, cli->run.trace))
        return EXIT_USER;
    const Ast *ast = cli_parse_model(cli);
    if (!ast)
        return EXIT_USER;
    if (cli->run.against)
        return bench_against(cli, ast);
    if (!cli->run.steps)
        cli->run.steps = PROFILE_STEPS;
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
