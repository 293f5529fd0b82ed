/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages of rules that inputs do not fit. */
#include "ir/shape_error.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

const char *show(const Type *t, Shown *buffer)
{
    size_t n = 0;
    buffer->text[n++] = '[';
    for (int i = 0; i < t->rank; i++)
        n += (size_t)snprintf(buffer->text + n, SHOW_LENGTH - n, i ? ",%" PRId64 : "%" PRId64,
                              t->dim[i]);
    snprintf(buffer->text + n, SHOW_LENGTH - n, "]");
    return buffer->text;
}

bool shape_fail(ShapeError *err, const char *code, int operand, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    err->code = code;
    err->operand = operand;
    err->help[0] = '\0';
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return false;
}

bool shape_help(ShapeError *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(err->help, sizeof err->help, format, args);
    va_end(args);
    return false;
}
