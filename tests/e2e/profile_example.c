/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile_example.h"

#include "e2e.h"

#include <stdio.h>
#include <string.h>

/* Compiled kernels stay in the tests' cache; tables of measurements do not. */
static void profile_forget(void)
{
    Result r = run("rm -f \"$SCRIMP_CACHE\"/*.costs");
    EXPECT(r.code == 0, r.err);
    result_free(&r);
}

static void profile_plan(const char *args, const char *budget, int code)
{
    json_t *o =
        run_json(code, "$SCRIMP plan $EXAMPLES/%s --cost profile --budget %s --json", args, budget);
    const char *cost = json_string_value(json_object_get(o, "cost"));
    double seconds = json_get_number(o, "predicted_seconds_per_step");
    EXPECT(cost && strcmp(cost, "profile") == 0, args);
    EXPECT(seconds > 0 && seconds < 60, args);
    EXPECT(code == 3 || json_get_number(o, "arena_bytes") <= json_get_number(o, "budget_bytes"),
           args);
    json_decref(o);
}

void profile_example(const ProfileExample *e)
{
    profile_forget();
    profile_plan(e->args, "min", 0);
    profile_plan(e->args, "50%", e->has_half ? 0 : 3);
}
