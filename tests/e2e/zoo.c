/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "zoo.h"

#include "e2e.h"

#include <stdio.h>
#include <string.h>

static void zoo_overfit(const ZooModel *m)
{
    char detail[4000], log[600];
    Result r =
        run("$SCRIMP train $EXAMPLES/%s --overfit --budget 100%% --steps %d --log $TMP/log -q",
            m->model, m->steps);
    snprintf(log, sizeof log, "%s/log", e2e_tmp());
    double loss = r.code == 0 ? last_in_log(log, "loss") : -1;
    snprintf(detail, sizeof detail, "%s: exit code %d, loss %g after %d steps\n%.3000s", m->model,
             r.code, loss, m->steps, r.err);
    EXPECT(loss >= 0 && loss <= m->loss, detail);
    printf("%-100s loss %.2g, %.0f s\n", m->model, loss, r.seconds);
    result_free(&r);
}

/* The same bits at half of the memory, or at the least of it where half is not enough; and
 * something has to be recomputed for that. */
static void zoo_verify(const ZooModel *m)
{
    static const char *const verify =
        "$SCRIMP verify $EXAMPLES/%s --budget %s --steps 2 --threads 2 --json";
    char detail[4000];
    const char *budget = "50%";
    Result r = run(verify, m->model, budget);
    if (r.code == 3) {
        result_free(&r);
        budget = "min";
        r = run(verify, m->model, budget);
    }
    snprintf(detail, sizeof detail, "%s at %s: exit code %d\n%.1000s\n%.1000s", m->model, budget,
             r.code, r.out, r.err);
    json_t *o = r.code == 0 ? json_loads(r.out, 0, NULL) : NULL;
    EXPECT(json_is_true(json_object_get(o, "identical")), detail);
    EXPECT(o && json_get_number(o, "recomputed_ops") > 0, detail);
    printf("%-100s %s at %s, %.0f s\n", m->model, o ? "the same" : "not verified", budget,
           r.seconds);
    json_decref(o);
    result_free(&r);
}

void zoo_run(const ZooModel *models, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        zoo_overfit(&models[i]);
        zoo_verify(&models[i]);
    }
}
