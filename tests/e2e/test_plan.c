/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plans of every example: the budget is kept, the arena equals its lower bound (nearly, at the
 * smallest budget), sweeps are monotone.
 * SCRIMP_BUDGETS: how many budgets of a sweep; SCRIMP_ALL=1: deep networks, too. */
#include "e2e.h"
#include "tests/support/sample.h"

#include <stdio.h>
#include <string.h>

/* Sizes small enough to plan in a moment; the operations are those of the full sizes. */
static const char *const examples[] = {"mlp.scrimp", "convnet.scrimp",
                                       "resnet.scrimp -D depth=18 -D N=2", "chargpt.scrimp",
                                       "gpt2.scrimp -D N=1 -D T=64 -D layers=2"};
/* Whole graphs, whose least plans take many seconds. */
static const char *const deep[] = {"resnet.scrimp -D depth=50 -D size=64 -D N=4",
                                   "gpt2.scrimp -D N=1 -D T=64"};
enum { N_EXAMPLES = sizeof examples / sizeof *examples, N_DEEP = sizeof deep / sizeof *deep };

/* The placement is as low as the most bytes that are alive at once. */
static void expect_sound(const json_t *o, const char *what)
{
    double peak = json_get_number(o, "peak_bytes"), arena = json_get_number(o, "arena_bytes");
    EXPECT(peak == json_get_number(o, "arena_lower_bound_bytes"), what);
    EXPECT(arena == peak, what);
    EXPECT(json_get_number(o, "persistent_bytes") <= peak, what);
    EXPECT(json_get_number(o, "peak_lower_bound_bytes") <= peak, what);
    EXPECT(json_get_number(o, "overhead_lower_bound_percent") <=
               json_get_number(o, "overhead_percent") + 1e-9,
           what);
    if (json_get_number(o, "recomputed_ops") == 0)
        EXPECT(json_get_number(o, "order_lower_bound_bytes") <= peak, what);
    const json_t *budget = json_object_get(o, "budget_bytes");
    EXPECT(!json_is_number(budget) || arena <= json_number_value(budget), what);
}

/* Operation, workspace and tensors, largest first, are the bound or what is left of it beside the
 * persistent bytes (outputs written over an input are not listed). */
static void expect_forced(const json_t *o, const char *what)
{
    const json_t *forced = json_object_get(o, "forced_by");
    const json_t *tensors = json_object_get(forced, "tensors"), *x;
    double sum = json_get_number(o, "persistent_bytes"), last = 1e300;
    size_t i;
    EXPECT(strlen(json_string_value(json_object_get(forced, "operation"))) > 0, what);
    EXPECT(json_array_size(tensors) > 0, what);
    json_array_foreach(tensors, i, x)
    {
        EXPECT(json_get_number(x, "bytes") <= last, what);
        EXPECT(strlen(json_string_value(json_object_get(x, "name"))) > 0, what);
        last = json_get_number(x, "bytes");
        sum += last;
    }
    sum += json_get_number(forced, "workspace_bytes");
    EXPECT(sum <= json_get_number(o, "peak_lower_bound_bytes"), what);
    EXPECT(sum > 0.6 * json_get_number(o, "peak_lower_bound_bytes"), what);
}

static void test_example(const char *example)
{
    static const char *const keys[] = {"solver",
                                       "status",
                                       "budget_bytes",
                                       "persistent_bytes",
                                       "keep_all_peak_bytes",
                                       "peak_bytes",
                                       "arena_bytes",
                                       "arena_lower_bound_bytes",
                                       "overhead_percent",
                                       "overhead_lower_bound_percent",
                                       "recomputed_ops",
                                       "solve_seconds"};
    json_t *all = run_json(0, "$SCRIMP plan $EXAMPLES/%s --budget 100%% --json", example);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        EXPECT(json_object_get(all, keys[i]) != NULL, keys[i]);
    expect_sound(all, example);
    json_t *min = run_json(0, "$SCRIMP plan $EXAMPLES/%s --budget min --json", example);
    expect_sound(min, example);
    EXPECT(json_get_number(min, "peak_bytes") <= json_get_number(all, "peak_bytes"), example);
    json_t *memory =
        run_json(0, "$SCRIMP plan $EXAMPLES/%s --budget 100%% --objective memory --json", example);
    EXPECT(json_get_number(memory, "arena_bytes") == json_get_number(min, "arena_bytes"), example);
    json_decref(memory);
    /* One byte less than the minimum is refused, and the answer names the minimum. */
    double least = json_get_number(min, "arena_bytes");
    json_t *none =
        run_json(3, "$SCRIMP plan $EXAMPLES/%s --budget %.0fB --json", example, least - 1);
    EXPECT(json_get_number(none, "min_feasible_bytes") <= least, example);
    EXPECT(strcmp(json_string_value(json_object_get(none, "status")), "infeasible") == 0, example);
    expect_forced(none, example);
    json_decref(all);
    json_decref(min);
    json_decref(none);
}

/* A step that fits as it is has no masks, which would take time. */
static void expect_kept(const char *example)
{
    json_t *o = run_json(0, "$SCRIMP plan $EXAMPLES/%s --budget 100%% --json", example);
    EXPECT(json_get_number(o, "masked_tensors") == 0, example);
    EXPECT(json_get_number(o, "recomputed_ops") == 0, example);
    EXPECT(json_get_number(o, "overhead_percent") <= 0, example);
    EXPECT(strcmp(json_string_value(json_object_get(o, "status")), "optimal") == 0, example);
    json_decref(o);
}

/* Masks lower the arena, not what a percentage is of; --no-masks leaves them out. */
static void test_masks(void)
{
    static const char *const masked[] = {"vgg.scrimp -D depth=11 -D N=32",
                                         "googlenet.scrimp -D N=1"};
    for (int i = 0; i < 2; i++) {
        json_t *o = run_json(0, "$SCRIMP plan $EXAMPLES/%s --json", masked[i]);
        json_t *whole = run_json(0, "$SCRIMP plan $EXAMPLES/%s --no-masks --json", masked[i]);
        double arena = json_get_number(o, "arena_bytes"),
               all = json_get_number(whole, "arena_bytes");
        double persistent = json_get_number(o, "persistent_bytes");
        expect_sound(o, masked[i]);
        EXPECT(arena - persistent < 0.9 * (all - persistent), masked[i]);
        EXPECT(json_get_number(o, "masked_tensors") > 0, masked[i]);
        EXPECT(json_get_number(whole, "masked_tensors") == 0, masked[i]);
        expect_kept(masked[i]);
        EXPECT(json_get_number(o, "keep_all_peak_bytes") ==
                   json_get_number(whole, "keep_all_peak_bytes"),
               masked[i]);
        json_decref(o);
        json_decref(whole);
    }
}

/* Pieces that lie inside the whole lower the arena below the load of copies; --no-views copies. */
static void test_pieces(void)
{
    const char *densenet = "densenet.scrimp -D depth=121 -D size=64 -D N=2";
    json_t *o = run_json(0, "$SCRIMP plan $EXAMPLES/%s --json", densenet);
    json_t *copies = run_json(0, "$SCRIMP plan $EXAMPLES/%s --no-views --json", densenet);
    double peak = json_get_number(copies, "peak_bytes");
    EXPECT(json_get_number(copies, "arena_bytes") >= peak, densenet);
    EXPECT(json_get_number(o, "arena_bytes") < peak, densenet);
    json_decref(o);
    json_decref(copies);
}

/* Without scores a step needs less, and scores it keeps with --no-attention. */
static void test_attention(void)
{
    const char *gpt2 = "gpt2.scrimp -D N=1 -D T=512 -D layers=2 -D V=512 -D p=0.1 --budget 100%";
    json_t *o = run_json(0, "$SCRIMP plan $EXAMPLES/%s --json", gpt2);
    json_t *scores = run_json(0, "$SCRIMP plan $EXAMPLES/%s --no-attention --json", gpt2);
    double tensors = 2.0 * 12 * 512 * 512 * 4; /* before and after dropout, of one layer */
    expect_sound(o, gpt2);
    EXPECT(json_get_number(o, "keep_all_peak_bytes") + tensors <=
               json_get_number(scores, "keep_all_peak_bytes"),
           gpt2);
    json_decref(o);
    json_decref(scores);
}

static void test_promised_budgets(void)
{
    static const char *const promised[] = {"chargpt.scrimp", "demo.scrimp",
                                           "resnet.scrimp -D depth=18 -D N=2",
                                           "resnet.scrimp -D depth=50 -D size=64"};
    for (int i = 0; i < (sample_all() ? 4 : 3); i++)
        for (int percent = 60; percent <= 80; percent += 20) {
            json_t *o =
                run_json(0, "$SCRIMP plan $EXAMPLES/%s --budget %d%% --json", promised[i], percent);
            double persistent = json_get_number(o, "persistent_bytes");
            double all = json_get_number(o, "keep_all_peak_bytes");
            EXPECT(json_get_number(o, "arena_bytes") <=
                       persistent + percent / 100.0 * (all - persistent) + 1,
                   promised[i]);
            expect_sound(o, promised[i]);
            json_decref(o);
        }
}

/* Budgets from the minimum to everything kept: each is kept, and time falls as memory grows. */
static void test_sweep(const char *example)
{
    size_t n = (size_t)sample_number("SCRIMP_BUDGETS", 6);
    json_t *list = run_json(0, "$SCRIMP plan $EXAMPLES/%s --sweep %zu --json", example, n);
    EXPECT(json_array_size(list) == n, example);
    double last = 1e30, budget = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *o = json_array_get(list, i);
        expect_sound(o, example);
        EXPECT(json_get_number(o, "budget_bytes") >= budget, "budgets rise");
        budget = json_get_number(o, "budget_bytes");
        EXPECT(json_get_number(o, "arena_bytes") <= budget, "the budget is that of the arena");
        EXPECT(json_get_number(o, "peak_bytes") <= budget, example);
        double overhead = json_get_number(o, "overhead_percent");
        EXPECT(overhead <= last, "time falls as memory grows");
        last = overhead;
    }
    EXPECT(last == 0, "everything kept costs nothing");
    json_decref(list);
}

/* The effort is the user's; without any, what is quick still answers. */
static void test_effort(void)
{
    static const char *const effort[] = {"0.1", "1", "3"};
    for (int i = 0; i < 3; i++) {
        json_t *o = run_json(0,
                             "$SCRIMP plan $EXAMPLES/chargpt.scrimp --budget 50%% --effort %s "
                             "--json",
                             effort[i]);
        expect_sound(o, effort[i]);
        EXPECT(json_get_number(o, "overhead_percent") < 16, effort[i]);
        json_decref(o);
    }
    Result r = run("$SCRIMP plan $EXAMPLES/chargpt.scrimp --effort much");
    EXPECT(r.code != 0 && strstr(r.err, "--effort"), r.err);
    result_free(&r);
}

static void test_compare(void)
{
    json_t *list = run_json(0, "$SCRIMP plan $EXAMPLES/mlp.scrimp --compare --json");
    EXPECT(json_array_size(list) >= 3, "a row for every solver");
    json_decref(list);
}

/* Rows are written one by one: whoever has seen enough of a pipe ends the search. */
static void test_rows_as_they_come(void)
{
    static const char *const option[] = {"--compare --budget 60%", "--sweep 9"};
    for (int i = 0; i < 2; i++) {
        Result r = run("($SCRIMP plan $EXAMPLES/chargpt.scrimp %s; echo $? > $TMP/status) | "
                       "head -n 2; cat $TMP/status",
                       option[i]);
        EXPECT(r.code == 0 && strstr(r.out, "\n141\n"), r.out); /* 128 + SIGPIPE */
        result_free(&r);
    }
}

/* The peak was that of an order that was not taken. */
static void test_no_budget(void)
{
    json_t *o = run_json(0, "$SCRIMP plan $EXAMPLES/googlenet.scrimp -D N=2 -D size=64 --objective "
                            "memory --json");
    expect_sound(o, "objective memory without a budget");
    json_decref(o);
}

int main(void)
{
    e2e_begin();
    test_no_budget();
    test_rows_as_they_come();
    for (int i = 0; i < N_EXAMPLES; i++)
        test_example(examples[i]);
    for (int i = 0; i < N_DEEP && sample_all(); i++)
        test_example(deep[i]);
    test_masks();
    test_pieces();
    test_attention();
    test_promised_budgets();
    test_sweep("convnet.scrimp");
    test_sweep("chargpt.scrimp");
    test_sweep("mlp.scrimp");
    test_sweep("vgg.scrimp -D depth=11 -D size=64 -D hidden=256 -D N=64");
    test_effort();
    test_compare();
    return e2e_end();
}
