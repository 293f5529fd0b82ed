/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random well-formed graphs out of the rows of op_cases: every operation, views of the op table's
 * attributes, fused groups, updates that write parameters, recomputations, outputs and a train
 * section. */
#ifndef SCRIMP_TESTS_RANDOM_GRAPH_H
#define SCRIMP_TESTS_RANDOM_GRAPH_H

#include "ir/graph.h"
#include "tests/support/random.h"

double random_double(Random *r);
Graph *random_graph(Pool *pool, Random *r);

#endif
