/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random training steps for the tests of order, remat and memory plan: a forward DAG with weights,
 * views, several outputs, running statistics and a metric, a backward part derived by rule, and
 * updates in place. */
#ifndef SCRIMP_TESTS_SUPPORT_RANDOM_STEP_H
#define SCRIMP_TESTS_SUPPORT_RANDOM_STEP_H

#include "ir/graph.h"
#include "tests/support/random.h"

/* n_ops <= 500 forward operations; updates come last in the order. */
Graph *random_step(Pool *pool, uint64_t seed, int n_ops);

#endif
