/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which element types have kernels. */
#ifndef SCRIMP_CODEGEN_BUILD_SUPPORTS_H
#define SCRIMP_CODEGEN_BUILD_SUPPORTS_H

#include "codegen/build/kernel.h"

/* Whether there is code for this operation on values of these types; a fused one with all that is
 * in its body.  When not, *err says what is missing and what has code (E111).  The rules of
 * lowering rely on it. */
bool codegen_supports(const Graph *g, const Node *n, ShapeError *err);
/* The same for every operation of a graph: NULL, or what has no code, with its name and place. */
const char *codegen_unsupported(Pool *pool, const Graph *g);
/* The same for what a backend has. */
const char *codegen_unsupported_by(Pool *pool, const Backend *backend, const Graph *g);

#endif
