/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Errors of shape rules: code, message and help for inputs that do not fit. */
#ifndef SCRIMP_IR_SHAPE_ERROR_H
#define SCRIMP_IR_SHAPE_ERROR_H

#include "ir/op.h"

enum { SHOW_LENGTH = 192 };
typedef struct Shown {
    char text[SHOW_LENGTH];
} Shown;
/* "[32,64]" in a caller's buffer: show(t, &(Shown){0}). */
const char *show(const Type *t, Shown *buffer);
#define SHOW(t) show((t), &(Shown){0})

/* Fills *err and returns false.  operand: index of the offending input or -1. */
bool shape_fail(ShapeError *err, const char *code, int operand, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Adds the way out to the failure just made; returns false too. */
bool shape_help(ShapeError *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
