/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A compiled step against ir/eval's doubles of the same step: its numbers, and every persistent
 * tensor after it. */
#ifndef SCRIMP_TESTS_STEP_COMPARE_H
#define SCRIMP_TESTS_STEP_COMPARE_H

#include "tests/support/run/model_run.h"

/* What differs after one step, NULL when nothing does. */
const char *compare_state(const Running *r, const EvalState *s, double lr, double tolerance);
const char *compare_numbers(const Running *r, const EvalState *s, double tolerance);

#endif
