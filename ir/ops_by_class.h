/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The operations of one class: calls EACH_POINT(name) for every POINT operation of ops.def,
 * EACH_MATRIX(name) for every MATRIX operation, and undefines both.  Whoever includes it defines
 * what it wants; it is included several times. */
#ifndef EACH_POINT
#define EACH_POINT(name)
#endif
#ifndef EACH_MATRIX
#define EACH_MATRIX(name)
#endif
#define EACH_SOURCE(name)
#define EACH_VIEW(name)
#define EACH_DATA(name)
#define EACH_REDUCE(name)
#define EACH_UPDATE(name)
#define EACH_REGION(name)
#define OP(name, min_in, max_in, n_out, op_class, ...) EACH_##op_class(name)
#include "ir/ops.def"
#undef OP
#undef EACH_SOURCE
#undef EACH_POINT
#undef EACH_VIEW
#undef EACH_MATRIX
#undef EACH_DATA
#undef EACH_REDUCE
#undef EACH_UPDATE
#undef EACH_REGION
