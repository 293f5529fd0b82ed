/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Learning rates: schedules, and formulas of the step (ir/lr_formula.h) that operators and
 * functions build of the names step, epoch and progress. */
#ifndef SCRIMP_FRONTEND_LANGUAGE_ELABORATE_TRAIN_RATE_H
#define SCRIMP_FRONTEND_LANGUAGE_ELABORATE_TRAIN_RATE_H

#include "frontend/language/elaborate/builtins.h"

/* Binds the names that stand for numbers of the step. */
void rate_add_names(Elab *l, Scope *names);
/* An operator of which one operand is a schedule. */
Val rate_binary(Elab *l, BinaryOp op, Val a, Val b, Span span);
/* Whether the call is of a function that formulas know, with a schedule among its arguments; and
 * its value. */
bool rate_takes_call(const BuiltinCall *c);
Val rate_call(BuiltinCall *c);

#endif
