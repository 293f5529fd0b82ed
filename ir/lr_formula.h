/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Learning rates as formulas of the step, in text: "mul(0.1,sub(1,progress))".  Numbers, variables
 * and functions of the tables in lr_formula.c, without spaces; comparisons are 1 or 0. */
#ifndef SCRIMP_IR_LR_FORMULA_H
#define SCRIMP_IR_LR_FORMULA_H

#include <stdbool.h>

typedef struct LrVariables {
    double step;     /* updates done before */
    double total;    /* updates of the run */
    double progress; /* step / total */
    double epoch;    /* whole and part */
    double now, end; /* step and total, or these in epochs where the section counts epochs */
} LrVariables;

/* False when the text is no formula, or nested too deep. */
bool lr_formula_eval(const char *text, const LrVariables *variables, double *out);

/* Of a function: how many arguments it takes, 0 for a name that is none. */
int lr_formula_arity(const char *function);

#endif
