/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Training steps of any size as plain data: a layered forward part, in which a node reads weights
 * and one to three values of the last layers, its backward part by rule, and an update for each
 * weight. */
#ifndef SCRIMP_TESTS_SUPPORT_LAYERED_PROBLEM_H
#define SCRIMP_TESTS_SUPPORT_LAYERED_PROBLEM_H

#include "tests/support/random_problem.h"

/* About 5 nodes for each of layers * width.  width 1 is a chain without skips. */
RematProblem *layered_problem(Pool *pool, Random *r, int layers, int width);

#endif
