/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One-operation graphs whose sums are exact: operands are small multiples of 1/4, so that compiled
 * results must equal the reference evaluator's in every bit. */
#ifndef SCRIMP_TESTS_EXACT_CASE_H
#define SCRIMP_TESTS_EXACT_CASE_H

#include "ir/eval.h"
#include "ir/graph.h"
#include "tests/support/run/run_kernels.h"

typedef struct ExactCase {
    Pool *pool;
    Graph *g;
} ExactCase;

/* lo..hi inclusive, the same numbers in every run. */
int64_t exact_case_pick(int64_t lo, int64_t hi);
ExactCase exact_case_new(void);
ValueId exact_case_input(ExactCase *c, int rank, const int64_t *dim);
/* Random operands, the same for both. */
void exact_case_fill(const KernelRun *r, EvalState *s);
/* How many elements of v differ; the first are printed. */
int exact_case_differences(const ExactCase *c, const KernelRun *r, const EvalState *s, ValueId v);
/* Runs the case, in one go and task by task from the end; both must equal the reference.  Frees
 * it. */
void exact_case_check(ExactCase *c, ValueId result, const Target *target, const char *text);

#endif
