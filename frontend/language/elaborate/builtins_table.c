/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of builtins, from builtins.def. */
#include "frontend/language/elaborate/builtins_table.h"

#include <math.h>

static double number_rsqrt(double x)
{
    return 1 / sqrt(x);
}

const Builtin builtin_table[] = {
#define PART(id, title)
#define BUILTIN(name, function, layer, signature, doc)                                             \
    {#name, signature, doc, builtin_##function, layer, OP_COUNT, NULL},
#define UNARY(name, kind, number, doc)                                                             \
    {#name, "x: " #kind, doc, builtin_unary, false, OP_##name, number},
#include "frontend/language/elaborate/builtins.def"
#undef PART
#undef BUILTIN
#undef UNARY
};
const int builtin_count = sizeof builtin_table / sizeof builtin_table[0];

/* The number of each row; that of a part is that of its first row. */
enum {
#define PART(id, title)    PART_##id, BEFORE_##id = PART_##id - 1,
#define BUILTIN(name, ...) ROW_##name,
#define UNARY(name, ...)   ROW_##name,
#include "frontend/language/elaborate/builtins.def"
#undef PART
#undef BUILTIN
#undef UNARY
};

const BuiltinPart builtin_parts[] = {
#define PART(id, title) {PART_##id, title},
#define BUILTIN(...)
#define UNARY(...)
#include "frontend/language/elaborate/builtins.def"
#undef PART
#undef BUILTIN
#undef UNARY
    {sizeof builtin_table / sizeof builtin_table[0], NULL}};
