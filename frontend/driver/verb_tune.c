/* SPDX-License-Identifier: GPL-3.0-or-later */
/* tune: the fastest variants of a model's kernels on this machine. */
#include "frontend/driver/cli_build.h"
#include "frontend/driver/cli_signals.h"
#include "frontend/driver/cli_tune.h"

#include <stdio.h>

static double gain_of(const TunedKernel *k)
{
    return k->after > 0 ? k->before / k->after : 1;
}

static void print_json(const TuneResult *r, int64_t pairs)
{
    json_t *kernels = json_array();
    for (int i = 0; i < r->n_kernels; i++) {
        const TunedKernel *k = &r->kernel[i];
        json_array_append_new(kernels,
                              json_pack("{s:s,s:s,s:I,s:f,s:f,s:s,s:f}", "name", k->label,
                                        "problem", k->problem, "calls", (json_int_t)k->calls,
                                        "default_seconds", k->before, "seconds", k->after,
                                        "variant", k->name, "gain", gain_of(k)));
    }
    json_t *o = json_pack("{s:o,s:I,s:i,s:i,s:b,s:s}", "kernels", kernels, "steps",
                          (json_int_t)pairs, "rounds", r->rounds, "rounds_done", r->done,
                          "rejected", r->rejected, "processor", r->processor);
    if (r->after > 0) {
        json_object_set_new(o, "default_seconds_per_step", json_real(r->before));
        json_object_set_new(o, "seconds_per_step", json_real(r->after));
        json_object_set_new(o, "ratio", json_real(r->ratio.median));
        json_object_set_new(o, "ratio_low", json_real(r->ratio.low));
        json_object_set_new(o, "ratio_high", json_real(r->ratio.high));
    }
    cli_print_json(o);
}

static void print_step(const TuneResult *r)
{
    if (r->done < r->rounds)
        printf("ended early, after %d of at least %d rounds: what was faster by then is kept, not "
               "confirmed\n",
               r->done, r->rounds);
    else if (r->after <= 0)
        puts("no variant is faster than the default");
    else
        printf(
            "step: %.3f ms with the defaults, %.3f ms tuned: %.4f times as fast (%.4f to %.4f in "
            "95%% of draws)\n",
            1e3 * r->before, 1e3 * r->after, r->ratio.median, r->ratio.low, r->ratio.high);
    if (r->rejected)
        puts("the step is slower with all of them together: the defaults stay");
}

static void print_table(const TuneResult *r)
{
    printf("%-44s %6s %12s %10s  %-12s %8s\n", "kernel", "calls", "default ms", "tuned ms",
           "variant", "gain");
    for (int i = 0; i < r->n_kernels; i++) {
        const TunedKernel *k = &r->kernel[i];
        printf("%-44s %6lld %12.4f %10.4f  %-12s %7.1f%%\n", k->label, (long long)k->calls,
               1e3 * k->before, 1e3 * k->after, k->name, 100 * (gain_of(k) - 1));
    }
    print_step(r);
    printf("kept for %s\n", r->processor);
}

ExitCode verb_tune(Cli *cli)
{
    const Ast *ast = cli_parse_model(cli);
    if (!ast || !tune_possible(cli))
        return EXIT_USER;
    int64_t pairs = cli->run.steps ? cli->run.steps : TUNE_PAIRS;
    if (pairs < TUNE_LEAST_PAIRS)
        return cli_error(cli, EXIT_USER, "E407", NULL,
                         "tune needs 5 steps or more: from fewer no spread can be told");
    Program program;
    ProgramOptions o = {.mode = FRONTEND_TRAIN};
    ExitCode code = cli_build(cli, ast, &o, &program);
    if (code != EXIT_OK)
        return code;
    TuneResult r;
    code = tune_model(cli, &program, pairs, &r);
    if (code != EXIT_OK)
        return code;
    if (cli->output.json)
        print_json(&r, pairs);
    else
        print_table(&r);
    cli->state->ended_by = signals_caught();
    return EXIT_OK;
}
