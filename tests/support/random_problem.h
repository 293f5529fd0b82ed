/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Small random remat problems, as plain data: DAGs with workspaces, persistent weights and their
 * updates, in-place pairs and several outputs. */
#ifndef SCRIMP_TESTS_SUPPORT_RANDOM_PROBLEM_H
#define SCRIMP_TESTS_SUPPORT_RANDOM_PROBLEM_H

#include "passes/remat/model/problem.h"
#include "tests/support/random_step.h"

/* Adds a tensor; its index. */
int problem_tensor(RematProblem *p, int64_t bytes, int producer, bool persistent);

/* The node reads the tensor, once. */
void problem_read(RematNode *node, int tensor);

RematProblem *random_problem(Pool *pool, Random *r, int n_nodes);

/* Graphs from elsewhere: nodes overwrite values that can be made again, several outputs are kept,
 * some of them beside one that is overwritten, and sizes and times may be 0. */
RematProblem *random_overwriting(Pool *pool, Random *r, int n_nodes);

/* Problems whose rematerialization is a question: a long way forward, and a backward part that
 * reads what the forward part made, which random_problem seldom gives. */
RematProblem *random_training(Pool *pool, Random *r, int n_forward);

#endif
