/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The same numbers for kernels and for the reference evaluator. */
#ifndef SCRIMP_TESTS_RUN_INPUTS_H
#define SCRIMP_TESTS_RUN_INPUTS_H

#include "ir/eval.h"
#include "tests/support/run/run_kernels.h"

/* Element i of the input that is node `place` of the graph's order; asked for in order. */
typedef double RunElement(size_t place, int64_t i);
/* Of inputs of f32, which has every element. */
void run_fill_inputs(const KernelRun *r, EvalState *s, RunElement *element);

#endif
