/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/remat/solvers.h"

#include <string.h>

const RematSolver remat_solvers[] = {
#define SOLVER(name, ...) {#name, remat_##name, __VA_ARGS__},
#include "passes/remat/solvers.def"
#undef SOLVER
    {0},
};

const RematSolver *remat_solver_find(const char *name)
{
    for (const RematSolver *s = remat_solvers; s->name; s++)
        if (strcmp(s->name, name) == 0)
            return s;
    return NULL;
}
