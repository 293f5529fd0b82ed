/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "resident_memory.h"

#include "e2e.h"

#include <stdio.h>

void expect_within(const char *example, const char *budget, const char *data, double data_bytes)
{
    json_t *o = run_json(0, "$SCRIMP plan $EXAMPLES/%s --budget %s --json", example, budget);
    double arena = json_get_number(o, "arena_bytes");
    Result r = run("exec $SCRIMP train $EXAMPLES/%s --budget %s %s --steps 3 --threads 2 -q",
                   example, budget, data);
    double slack = arena * 0.02 > 8e6 ? arena * 0.02 : 8e6;
    double allowed = arena + data_bytes + 32e6 + slack;
    char detail[3000];
    snprintf(detail, sizeof detail,
             "%s at %s: %lld bytes resident, %.0f allowed (arena %.0f)\n%.2000s", example, budget,
             (long long)r.max_resident, allowed, arena, r.err);
    EXPECT(r.code == 0, detail);
    EXPECT((double)r.max_resident <= allowed, detail);
    fprintf(stderr, "%s", detail);
    result_free(&r);
    json_decref(o);
}
