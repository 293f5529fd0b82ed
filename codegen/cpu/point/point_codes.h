/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Calls CODE_POINT(name) for every POINT operation of ops.def, CODE_OTHER(name) for the others, and
 * undefines both.  Included several times. */
#define CODE_SOURCE                                    CODE_OTHER
#define CODE_VIEW                                      CODE_OTHER
#define CODE_MATRIX                                    CODE_OTHER
#define CODE_DATA                                      CODE_OTHER
#define CODE_REDUCE                                    CODE_OTHER
#define CODE_UPDATE                                    CODE_OTHER
#define CODE_REGION                                    CODE_OTHER
#define OP(name, min_in, max_in, n_out, op_class, ...) CODE_##op_class(name)
#include "ir/ops.def"
#undef OP
#undef CODE_SOURCE
#undef CODE_VIEW
#undef CODE_MATRIX
#undef CODE_DATA
#undef CODE_REDUCE
#undef CODE_UPDATE
#undef CODE_REGION
#undef CODE_POINT
#undef CODE_OTHER
