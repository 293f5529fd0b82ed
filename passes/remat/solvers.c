/* The table of solvers. */
#include "passes/remat/solvers.h"

#include <string.h>

const RematSolver remat_solvers[] = {
    /* clang-format off */
    {"none", "no recomputation", remat_none, true},
    {"chen", "segments at split points (Chen et al. 2016, algorithm 3)", remat_chen, true},
    {"kusumoto_approx", "dynamic programming over ancestor sets (Kusumoto et al. 2019, section 4.3)", remat_kusumoto_approx, true},
    {"kusumoto_exact", "dynamic programming over all lower sets (Kusumoto et al. 2019, section 4.2)", remat_kusumoto_exact, false},
    {"kusumoto_exhaustive", "search of all sequences of lower sets (Kusumoto et al. 2019, section 4.1)", remat_kusumoto_exhaustive, false},
    {"feng_linear", "checkpoints of a chain by shortest paths (Feng, Huang 2018 and 2021, algorithm 1)", remat_feng_linear, false},
    {"feng_closeset", "checkpoints in close sets (Feng, Huang 2018, algorithm 6)", remat_feng_closeset, false},
    {"feng_acg", "checkpoints in a division tree (Feng, Huang 2021, algorithm 6)", remat_feng_acg, true},
    {"random", "the best of 10 random choices (the baseline of Feng, Huang 2021)", remat_random, false},
    {"twremat", "divide and conquer over a tree decomposition (Kumar et al. 2019)", remat_twremat, false},
    {NULL, NULL, NULL, false},
    /* clang-format on */
};

const RematSolver *remat_solver_find(const char *name)
{
    for (const RematSolver *s = remat_solvers; s->name; s++)
        if (strcmp(s->name, name) == 0)
            return s;
    return NULL;
}
