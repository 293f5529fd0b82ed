/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Loops and their gradients. */
#ifndef SCRIMP_PASSES_LOOP_PAIRS_H
#define SCRIMP_PASSES_LOOP_PAIRS_H

#include "ir/loop.h"

/* A loop whose further results (passes/autodiff/grad_rules_loop.c) are kept for the second, which
 * runs the other way. */
typedef struct LoopPair {
    NodeId forward, backward;
    double carry_bytes, kept_bytes; /* of one step: what it begins with, what is kept of it */
    int64_t steps;
} LoopPair;

typedef VEC(LoopPair) LoopPairs;

/* Those with the most bytes first. */
LoopPairs loop_pairs(const Graph *g, Pool *scratch);
/* By result of `forward`: only `backward` reads it, step by step.  On scratch. */
bool *loop_kept_results(const Graph *g, Pool *scratch, NodeId forward, NodeId backward);
/* How many steps to run again at a time, so that the fewest bytes are kept: of levels = 2 these
 * steps, too, are divided so.  0: there are too few steps for that. */
int64_t loop_run_length(const LoopPair *pair, int levels);

#endif
