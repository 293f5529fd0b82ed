/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_against.h"

#include "frontend/driver/cli_build.h"
#include "frontend/driver/cli_profile.h"
#include "frontend/driver/cli_turns.h"

#include <stdio.h>

enum { DEFAULT_PAIRS = 20, LEAST_PAIRS = 5 };

typedef struct Side {
    Cli *cli;
    Program program;
    Measurement m;
    Spread time;
} Side;

/* --- output --- */

static json_t *side_json(const Side *s)
{
    const MemPlan *plan = s->program.plan;
    return json_pack("{s:f,s:f,s:f,s:I,s:I,s:i}", "seconds_per_step", s->time.median,
                     "seconds_per_step_low", s->time.low, "seconds_per_step_high", s->time.high,
                     "peak_bytes", (json_int_t)plan->peak_bytes, "arena_bytes",
                     (json_int_t)plan->arena_bytes, "threads",
                     threads_count(s->m.running.machine.threads));
}

/* Of "a", "b": whose steps are faster in all but 5% of the draws; NULL: neither's. */
static const char *faster(const Ratio *r)
{
    return r->low > 1 ? "a" : r->high < 1 ? "b" : NULL;
}

static void print_json(const Side *a, const Side *b, const Ratio *r, int64_t pairs)
{
    cli_print_json(json_pack("{s:s,s:I,s:o,s:o,s:f,s:f,s:f,s:s?}", "against", a->cli->run.against,
                             "steps", (json_int_t)pairs, "a", side_json(a), "b", side_json(b),
                             "ratio", r->median, "ratio_low", r->low, "ratio_high", r->high,
                             "faster", faster(r)));
}

static void print_side(const Side *s, const char *name, const char *options)
{
    printf("%s  %10.3f ms/step (%.3f to %.3f), peak %s%s\n", name, 1e3 * s->time.median,
           1e3 * s->time.low, 1e3 * s->time.high,
           bytes_text(s->cli->pool, s->program.plan->peak_bytes), options);
}

static void print_verdict(const Ratio *r)
{
    if (!faster(r))
        puts("no difference can be told: neither is faster in 95% of draws");
    else if (r->low > 1)
        printf("A is %.3f to %.3f times as fast as B\n", r->low, r->high);
    else
        printf("B is %.3f to %.3f times as fast as A\n", 1 / r->high, 1 / r->low);
}

static void print_text(const Side *a, const Side *b, const Ratio *r, int64_t pairs)
{
    Pool *pool = a->cli->pool;
    print_side(a, "A    ", "");
    print_side(b, "B    ", pool_printf(pool, "   %s", a->cli->run.against));
    printf("B / A  %8.4f (%.4f to %.4f in 95%% of draws)\n", r->median, r->low, r->high);
    print_verdict(r);
    printf(
        "medians of %lld steps of each, in turns, and what the middle half of them lies between\n",
        (long long)pairs);
}

/* --- both --- */

static bool check(Cli *a, const Cli *b)
{
    const char *wrong = NULL;
    if (b->run.against != a->run.against)
        wrong = "--against stands within its own options";
    else if (b->run.trace)
        wrong = "--against and --trace exclude each other: trace each by itself";
    else if (b->run.steps != a->run.steps || b->output.json != a->output.json)
        wrong = "--steps and --json are for both: give them in front of --against";
    else if (a->build.device || b->build.device)
        wrong = "--against compares on this machine's processor, not on a --device: there is one "
                "arena on it, so that every turn would begin with sending all weights";
    else if (a->run.steps && a->run.steps < LEAST_PAIRS)
        wrong = "--against needs 5 steps or more: from fewer no spread can be told";
    if (!wrong)
        return true;
    cli_error(a, EXIT_USER, "E407", NULL, "%s", wrong);
    return false;
}

static ExitCode build(Side *s, const Ast *ast)
{
    ProgramOptions o = {.mode = FRONTEND_TRAIN};
    return cli_build(s->cli, ast, &o, &s->program);
}

/* Before anything is compiled. */
static bool both_fit(const Side *a, const Side *b)
{
    Pool *pool = a->cli->pool;
    RtError err;
    int64_t both, of_a = a->program.plan->arena_bytes, of_b = b->program.plan->arena_bytes;
    if (!size_add(of_a, of_b, &both))
        both = INT64_MAX;
    if (arena_fits(both, &err))
        return true;
    cli_error(a->cli, EXIT_USER, "E804", "bench each by itself, which needs less",
              "both arenas are in memory at once, A's arena of %s and B's of %s: %s",
              bytes_text(pool, of_a), bytes_text(pool, of_b), err.message);
    return false;
}

static bool open_both(Side *a, Side *b)
{
    if (!measurement_open(a->cli, &a->program, &a->m))
        return false;
    if (measurement_open(b->cli, &b->program, &b->m))
        return true;
    fprintf(stderr, "note: this was B, of --against; A's arena of %s is in memory meanwhile\n",
            bytes_text(a->cli->pool, a->program.plan->arena_bytes));
    return false;
}

static bool measure(Side *a, Side *b, int64_t pairs, Ratio *out)
{
    Pool *pool = a->cli->pool;
    if (!both_fit(a, b) || !open_both(a, b) || turns_take(&a->m, &b->m, pairs) < pairs)
        return false;
    a->time = turns_spread(pool, a->m.times.step, pairs);
    b->time = turns_spread(pool, b->m.times.step, pairs);
    *out = turns_ratio(pool, a->m.times.step, b->m.times.step, pairs);
    return true;
}

ExitCode bench_against(Cli *cli, const Ast *ast)
{
    ExitCode code = EXIT_OK;
    Ratio ratio;
    Side a = {.cli = cli}, b = {.cli = cli_parse_more(cli, cli->run.against, &code)};
    if (!b.cli)
        return code;
    if (!check(cli, b.cli) || !cli_device_known(b.cli))
        return EXIT_USER;
    int64_t pairs = cli->run.steps ? cli->run.steps : DEFAULT_PAIRS;
    code = build(&a, ast);
    code = code == EXIT_OK ? build(&b, ast) : code;
    if (code != EXIT_OK)
        return code;
    bool ok = measure(&a, &b, pairs, &ratio);
    if (ok && cli->output.json)
        print_json(&a, &b, &ratio, pairs);
    else if (ok)
        print_text(&a, &b, &ratio, pairs);
    measurement_close(&b.m);
    measurement_close(&a.m);
    return ok ? EXIT_OK : EXIT_USER;
}
