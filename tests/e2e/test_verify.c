/* Recomputation is invisible: every example, solver and budget, at one and two threads. */
#include "e2e.h"

#include <stdio.h>
#include <string.h>

static const char *const examples[] = {"mlp.scrimp -D N=16", "convnet.scrimp -D N=8",
                                       "resnet.scrimp -D depth=18 -D size=32 -D N=2 -D classes=10",
                                       "resnet.scrimp -D depth=50 -D size=64 -D N=2 -D classes=10",
                                       "chargpt.scrimp -D N=2"};
static const char *const solvers[] = {"none", "chen", "kusumoto_approx", ""};
static const char *const budgets[] = {"80%", "60%", "40%", "min"};

/* Identical, or (where the solver cannot meet the budget) exit code 3. */
static void verify(const char *example, const char *solver, const char *budget, int threads)
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

int main(void)
{
    e2e_begin();
    for (size_t e = 0; e < sizeof examples / sizeof *examples; e++)
        for (size_t s = 0; s < sizeof solvers / sizeof *solvers; s++)
            for (size_t b = 0; b < sizeof budgets / sizeof *budgets; b++)
                verify(examples[e], solvers[s], budgets[b], 1 + (int)((e + s + b) % 2));
    return e2e_end();
}
