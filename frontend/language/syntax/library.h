/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The library: frontend/std/, whose texts are part of the program. */
#ifndef SCRIMP_FRONTEND_LANGUAGE_SYNTAX_LIBRARY_H
#define SCRIMP_FRONTEND_LANGUAGE_SYNTAX_LIBRARY_H

#include "ir/support/pool.h"

#include <stdbool.h>

/* Whether an import of this name is one of the library: "std/norms", and not a file "std/x.scrimp".
 */
bool library_is_name(const char *import);
/* The text of "std/norms", or NULL. */
const char *library_text(const char *import);
/* What to write instead of a name that is not there. */
const char *library_suggestion(Pool *pool, const char *import);
/* "std/norms" for "rmsnorm": where the block of that name is; NULL: nowhere. */
const char *library_with_block(Pool *pool, const char *block);

#endif
