/* The table of solvers. */
#include "passes/remat/solvers.h"

#include <string.h>

const RematSolver remat_solvers[] = {
    {"none", "no recomputation", remat_none},
    {"chen", "segments at split points (Chen et al. 2016, algorithm 3)", remat_chen},
    {"kusumoto_approx",
     "dynamic programming over ancestor sets (Kusumoto et al. 2019, section 4.3)",
     remat_kusumoto_approx},
    {NULL, NULL, NULL},
};

const RematSolver *remat_solver_find(const char *name)
{
    for (const RematSolver *s = remat_solvers; s->name; s++)
        if (strcmp(s->name, name) == 0)
            return s;
    return NULL;
}
