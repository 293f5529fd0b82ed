/* SPDX-License-Identifier: GPL-3.0-or-later */
/* scrimp is never beaten by another solver, and its time never grows with the budget: random
 * problems, layered steps, small networks and a large one, at 50 budgets each.  SCRIMP_PROBLEMS:
 * how many random ones; SCRIMP_ALL=1: every network, else each third one.
 * slow_remat_best.c has the whole zoo. */
#include "check.h"
#include "passes/remat/cache/solution_cache.h"
#include "tests/support/layered_problem.h"
#include "tests/support/never_beaten.h"
#include "tests/support/sample.h"
#include "tests/support/zoo_problem.h"

#include <stdlib.h>

static void check_random(int seed)
{
    Pool *pool = pool_new();
    Random r = {(uint64_t)seed};
    RematProblem *p =
        seed % 3 == 0 ? layered_problem(pool, &r, 2 + random_below(&r, 8), 1 + random_below(&r, 4))
                      : random_problem(pool, &r, 3 + random_below(&r, 40));
    check_never_beaten(pool, p, 7, false, pool_printf(pool, "seed %d", seed));
    pool_free(pool);
}

static const ZooProblem networks[] = {
    {"convnet", {"N=4"}},
    {"mlp", {"N=8"}},
    {"vgg", {"depth=11", "size=32", "N=64", "hidden=64"}},
    {"resnet", {"depth=18", "size=64", "N=4"}},
    {"unet", {"size=188", "width=4", "N=4"}},
    {"nascell", {"cell=darts_v1", "C=4", "layers=3", "size=16", "N=16"}},
    {"gpt2", {"N=4", "T=64", "V=50", "layers=3", "C=32", "heads=2"}},
    {"lstm_ptb", {"N=64", "V=30", "H=32", "T=6"}},
    {"nascell", {"cell=darts_v2", "N=64"}},
};

int main(void)
{
    const char *text = getenv("SCRIMP_PROBLEMS");
    int n = text ? atoi(text) : 15;
    printf("seeds 1 to %d\n", n);
    for (int seed = 1; seed <= n; seed++)
        check_random(seed);
    for (size_t k = 0; k < sizeof networks / sizeof *networks; k += sample_all() ? 1 : 3)
        check_zoo_problem(&networks[k], false);
    return test_result();
}
