/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "verify_example.h"

#include "e2e.h"

#include <stdio.h>
#include <string.h>

void verify_example(const char *example, const char *solver, const char *budget, int threads)
{
    char command[600], detail[3000];
    snprintf(command, sizeof command,
             "$SCRIMP verify $EXAMPLES/%s %s%s --budget %s --threads %d --steps 2 --json", example,
             *solver ? "--solver " : "", solver, budget, threads);
    Result r = run("%s", command);
    snprintf(detail, sizeof detail, "%s\nexit code %d\n%.1000s\n%.1000s", command, r.code, r.out,
             r.err);
    json_t *o = r.code == 0 ? json_loads(r.out, 0, NULL) : NULL;
    bool infeasible = r.code == 3 && strcmp(budget, "min") != 0;
    EXPECT(infeasible || json_is_true(json_object_get(o, "identical")), detail);
    json_decref(o);
    result_free(&r);
}
