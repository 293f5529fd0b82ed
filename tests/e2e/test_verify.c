/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recomputation is invisible: examples with several solvers, at one and two threads.
 * slow_verify.c goes through all combinations. */
#include "e2e.h"
#include "verify_example.h"

#include <stdio.h>

static const char *const examples[] = {"mlp.scrimp -D N=16", "convnet.scrimp -D N=8",
                                       "chargpt.scrimp -D N=2 -D L=2 -D p=0.1",
                                       "vae.scrimp -D N=200 -D hidden=40"};

/* What is verified is the plan that plan and train make: it meets what plan says is enough. */
static void test_same_plan(const char *example)
{
    json_t *plan = run_json(0, "$SCRIMP plan $EXAMPLES/%s --budget min --json", example);
    double arena = json_get_number(plan, "arena_bytes");
    json_t *least = run_json(0, "$SCRIMP verify $EXAMPLES/%s --steps 1 --json", example);
    json_t *same =
        run_json(0, "$SCRIMP verify $EXAMPLES/%s --steps 1 --json --budget %.0f", example, arena);
    EXPECT(json_get_number(least, "budget_bytes") == arena, example);
    EXPECT(json_get_number(least, "recomputed_ops") == json_get_number(plan, "recomputed_ops"),
           example);
    EXPECT(json_is_true(json_object_get(same, "identical")), example);
    json_decref(plan);
    json_decref(least);
    json_decref(same);
}

/* Sizes that read the same when rounded are given in bytes. */
static void test_near_sizes(void)
{
    expect_said(0, "4261952 bytes instead of 4262016 bytes",
                "printf 'model m(x: f32[2, 8192]) { return x |> a: linear(64) |> silu() |> b: "
                "linear(4) }\ntrain { batch = synthetic(x = f32[2, 8192], label = i32[2])\nloss = "
                "cross_entropy(m(batch.x), batch.label)\noptim = sgd(lr = 0.1)\nsteps = 1 }' > "
                "$TMP/wide.scrimp; $SCRIMP verify $TMP/wide.scrimp --threads 1 --budget min");
}

/* Data are made up: what the model holds out is no matter of theirs, other files or more examples
 * than there are. */
static void expect_held_out(const char *held_out)
{
    char command[768];
    snprintf(command, sizeof command,
             "cd $TMP && printf 'model m(x: f32[4, 3]) { return x |> f: linear(2) }\ntrain {\n"
             "batch = csv(\"a.csv\", batch = 4, x = columns(\"x*\", count = 3), y = "
             "columns(\"y\", as = category))\nloss = cross_entropy(m(batch.x), batch.y)\n"
             "optim = sgd(lr = 0.1)\nsteps = 2\nheld_out = %s\n}\n' > held.scrimp && "
             "$SCRIMP verify held.scrimp && $SCRIMP bench held.scrimp --steps 2",
             held_out);
    expect_said(0, "identical: 3 steps", command);
}

static void test_held_out(void)
{
    expect_held_out("\"b.csv\"");
    expect_held_out("50000");
}

int main(void)
{
    e2e_begin();
    test_near_sizes();
    test_held_out();
    test_same_plan("chargpt.scrimp -D N=2 -D L=2");
    test_same_plan("convnet.scrimp -D N=8");
    for (size_t e = 0; e < sizeof examples / sizeof *examples; e++) {
        verify_example(examples[e], "", "min", 2);
        if (e % 2)
            verify_example(examples[e], "chen", "80%", 2);
        else
            verify_example(examples[e], "kusumoto_approx", "40%", 1);
    }
    verify_example("convnet.scrimp -D N=8", "", "100%", 2); /* masks against whole tensors */
    return e2e_end();
}
