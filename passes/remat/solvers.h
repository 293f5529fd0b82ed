/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of solvers. */
#ifndef SCRIMP_PASSES_REMAT_SOLVERS_H
#define SCRIMP_PASSES_REMAT_SOLVERS_H

#include "passes/remat/model/solver.h"

#define SOLVER(name, ...) RematSolve remat_##name;
#include "passes/remat/solvers.def"
#undef SOLVER

extern const RematSolver remat_solvers[]; /* as in solvers.def: the default first; ends
                                             with name == NULL */
const RematSolver *remat_solver_find(const char *name);

#endif
