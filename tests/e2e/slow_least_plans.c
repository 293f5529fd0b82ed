/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The smallest plans, and what parts of the solver and of the planner are for: plans that are out
 * of reach when one of them is missing (tests/earned/parts.txt has most by name).  Limits lie
 * between the plans with all parts and those without the one in question. */
#include "e2e.h"

#include <stdio.h>

static void expect_plan(const char *model, const char *budget, double most_mb, double most_percent)
{
    char what[300];
    json_t *o =
        run_json(0, "$SCRIMP plan $EXAMPLES/%s --budget %s --json --no-cache", model, budget);
    double mb = json_get_number(o, "arena_bytes") / 1e6;
    double percent = json_get_number(o, "overhead_percent");
    snprintf(what, sizeof what, "%s at %s: %.1f MB, +%.2f%%", model, budget, mb, percent);
    printf("%s\n", what);
    EXPECT(mb <= most_mb && percent <= most_percent, what);
    json_decref(o);
}

int main(void)
{
    e2e_begin();
    /* 477.4 MB without whole prices, 453.8 without shrinking */
    expect_plan("unet.scrimp", "min", 448, 100);
    /* 583.7 MB, +199%, without shrinking */
    expect_plan("resnet.scrimp", "min", 570, 100);
    /* +51% without whole prices */
    expect_plan("inception_v3.scrimp --no-masks", "20%", 1000, 25);
    /* 427.4 MB, and 420 refused, without the smallest schedule that has copies */
    expect_plan("densenet.scrimp", "420MB", 420, 50);
    /* 16.0 MB without shrinking */
    expect_plan("chargpt.scrimp --no-attention", "min", 15.8, 100);
    return e2e_end();
}
