/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The recomputation problems of the example networks. */
#ifndef SCRIMP_TESTS_ZOO_PROBLEM_H
#define SCRIMP_TESTS_ZOO_PROBLEM_H

#include "passes/remat/model/problem.h"
#include "tests/support/elaborate_text.h"

typedef struct ZooProblem {
    const char *file;
    const char *defs[8]; /* NULL at the end */
} ZooProblem;

/* What pass_remat gets to see; NULL after a failed check. */
RematProblem *zoo_problem(Pool *pool, Elaborated *elaborated, const ZooProblem *z);
void check_zoo_problem(const ZooProblem *z, bool all_steps);

#endif
