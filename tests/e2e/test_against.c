/* SPDX-License-Identifier: GPL-3.0-or-later */
/* bench --against: two settings in one run, the second on top of the first. */
#include "e2e.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MLP "$EXAMPLES/mlp.scrimp -D N=8 "

static double of_side(const json_t *o, const char *side, const char *key)
{
    return json_get_number(json_object_get(o, side), key);
}

/* B has 128 times the work of A; -D and --threads of B win. */
static void test_sides(void)
{
    json_t *o = run_json(0, "$SCRIMP bench " MLP "--threads 1 --steps 7 --json --against "
                            "'-D \"N=1024\" --threads 2 --budget min'");
    json_t *a = run_json(0, "$SCRIMP plan " MLP "--json"),
           *b = run_json(0, "$SCRIMP plan $EXAMPLES/mlp.scrimp -D N=1024 --budget min --json");
    double ratio = json_get_number(o, "ratio");
    double x = of_side(o, "a", "seconds_per_step"), y = of_side(o, "b", "seconds_per_step");
    EXPECT(json_get_number(o, "steps") == 7, "steps");
    EXPECT(x > 0 && fabs(ratio * x / y - 1) < 1e-6, "no ratio of the medians");
    EXPECT(json_get_number(o, "ratio_low") <= json_get_number(o, "ratio_high"), "no interval");
    EXPECT(ratio > 1, "128 times the work takes no time");
    const char *faster = json_string_value(json_object_get(o, "faster"));
    EXPECT(faster && strcmp(faster, "a") == 0, "B is faster with 128 times the work");
    EXPECT(of_side(o, "a", "threads") == 1 && of_side(o, "b", "threads") == 2, "threads");
    EXPECT(of_side(o, "a", "peak_bytes") == json_get_number(a, "peak_bytes"), "peak of A");
    EXPECT(of_side(o, "b", "peak_bytes") == json_get_number(b, "peak_bytes"), "peak of B");
    json_decref(o);
    json_decref(a);
    json_decref(b);
}

static void test_few_pairs(void)
{
    expect_run(1, "5 steps or more",
               "$SCRIMP bench " MLP "--threads 1 --steps 4 --against --no-masks");
    expect_said(0, "--no-masks\nB / A ",
                "$SCRIMP bench " MLP "--threads 1 --steps 5 --against --no-masks");
}

/* Which is faster, in words. */
static void test_verdict(void)
{
    const char *small = "$EXAMPLES/mlp.scrimp -D N=8", *large = "$EXAMPLES/mlp.scrimp -D N=1024";
    static const char format[] = "$SCRIMP bench %s --threads 1 --steps 5 --against '-D N=%d'";
    char command[200];
    snprintf(command, sizeof command, format, small, 1024);
    expect_said(0, " times as fast as B\n", command);
    snprintf(command, sizeof command, format, large, 8);
    expect_said(0, " times as fast as A\n", command);
}

static void test_errors(void)
{
    static const char *const cases[][2] = {
        {"'--nosuch'", "--nosuch: no such option"}, {"'--threads x'", "--threads x: not a number"},
        {"'-D x=1'", "-D x=1: no such option"},     {"'-D \"N=4'", "a quote does not end"},
        {"other.scrimp", "takes one file"},         {"'--against -q'", "within its own options"},
        {"'--trace t.json'", "exclude each other"}, {"'--steps 3'", "in front of --against"},
        {"'--device cuda'", "not on a --device"},   {"''", "is empty"},
    };
    char command[200];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(command, sizeof command, "$SCRIMP bench " MLP "--against %s", cases[i][0]);
        expect_run(1, cases[i][1], command);
    }
    expect_run(3, "infeasible", "$SCRIMP bench " MLP "--against '--budget 10'");
    expect_run(
        1, "both arenas are in memory at once, A's arena of",
        "ulimit -v 2000000; $SCRIMP bench " MLP "--threads 1 --steps 5 --against '-D "
        "hidden=20000' 2>&1 | tee $TMP/full >&2; grep -q 'no memory for the arena' $TMP/full "
        "&& exit 1");
}

int main(void)
{
    e2e_begin();
    test_sides();
    test_few_pairs();
    test_verdict();
    test_errors();
    return e2e_end();
}
