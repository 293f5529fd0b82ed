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
