/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory that a product wants soon, asked for while tiles are computed: what is packed next, or the
 * next rows of an operand that is read in place.  The hardware follows neither: such rows are short
 * or many, and begin while it has nothing to do. */
#ifndef SCRIMP_CODEGEN_CPU_GEMM_GEMM_AHEAD_H
#define SCRIMP_CODEGEN_CPU_GEMM_GEMM_AHEAD_H

#include "codegen/jit/jit.h"

/* `rows` rows of `floats` floats, `stride` apart, of which every tile asks for `share`. */
typedef struct Ahead {
    JitValue from, rows, floats, share;
    int64_t stride;
} Ahead;

/* Shares for `tiles` tiles, at least one. */
Ahead ahead_of(Jit *j, JitValue from, JitValue rows, int64_t stride, JitValue floats,
               JitValue tiles);
/* What tile number `turn`, from 0, asks for; nothing where all of it has been. */
void ahead_ask(Jit *j, const Ahead *a, JitValue turn);

#endif
