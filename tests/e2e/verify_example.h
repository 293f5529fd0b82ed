/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `scrimp verify` on an example: identical, or (where the solver cannot meet the budget) exit
 * code 3.
 */
#ifndef SCRIMP_TESTS_VERIFY_EXAMPLE_H
#define SCRIMP_TESTS_VERIFY_EXAMPLE_H

#include "e2e.h"

#include <stdio.h>
#include <string.h>

static inline void verify_example(const char *example, const char *solver, const char *budget,
                                  int threads)
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

#endif
