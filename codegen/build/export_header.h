/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The header of a step that is compiled ahead of time; used by export.c. */
#ifndef SCRIMP_CODEGEN_BUILD_EXPORT_HEADER_H
#define SCRIMP_CODEGEN_BUILD_EXPORT_HEADER_H

#include "codegen/build/kernel.h"

/* C text; name, an identifier, is what all its names begin with. */
const char *export_header(Pool *pool, const Graph *g, const MemPlan *plan, const char *name);

#endif
