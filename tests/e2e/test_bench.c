/* SPDX-License-Identifier: GPL-3.0-or-later */
/* bench: one statistic for the step, its kernels and what is between them, and rows that add up. */
#include "e2e.h"

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
    EXPECT(strstr(r.out, "\noutside kernels ") && strstr(r.out, "\nrest: "), r.out);
    result_free(&r);
}

int main(void)
{
    e2e_begin();
    expect_sum(1);
    EXPECT(expect_sum(20), "20 steps took the same time");
    test_table();
    return e2e_end();
}
