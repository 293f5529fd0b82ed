/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Copies that put factors of products into the order in which matrix registers are loaded: bf16, in
 * pairs of steps. */
#ifndef SCRIMP_CODEGEN_CPU_GEMM_GEMM_AMX_PACK_H
#define SCRIMP_CODEGEN_CPU_GEMM_GEMM_AMX_PACK_H

#include "codegen/jit/jit.h"

/* A line is a row of A or a column of B.  Its element of step k is, in 16-bit words of what is
 * packed, at line * line_words + k, or, paired, at k/2 * line_words + 2 * line + k%2. */
typedef struct AmxPack {
    int64_t line, step; /* elements of the source between lines, between steps; one of them is 1 */
    int64_t line_words;
    bool paired;
} AmxPack;

/* `lines` lines of `steps` steps (i64) from a source of f32 or bf16, as its pointer says, to `to`
 * (p_bf16), with zeros behind the last step to a multiple of 32.  Lines behind the last one are
 * left as they are. */
void amx_pack(Jit *j, const AmxPack *p, JitValue to, JitValue from, JitValue lines, JitValue steps);

#endif
