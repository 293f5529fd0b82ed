/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The functions of the table in builtins.def, and what two of their files share. */
#ifndef SCRIMP_FRONTEND_LANGUAGE_ELABORATE_BUILTINS_TABLE_H
#define SCRIMP_FRONTEND_LANGUAGE_ELABORATE_BUILTINS_TABLE_H

#include "frontend/language/elaborate/builtins.h"

#define PART(id, title)
#define BUILTIN(name, function, ...) BuiltinFn builtin_##function;
#define UNARY(...)
#include "frontend/language/elaborate/builtins.def"
#undef PART
#undef BUILTIN
#undef UNARY
BuiltinFn builtin_unary; /* all rows UNARY */

/* The smallest or largest of compile-time numbers; builtins_value.c, for max and min. */
Val value_extreme(BuiltinCall *c, bool largest);
Val value_sum(BuiltinCall *c);

#endif
