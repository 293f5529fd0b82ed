/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Copies that make squares for matrix registers (gemm_amx_layout.h) of factors of products. */
#ifndef SCRIMP_CODEGEN_CPU_GEMM_GEMM_AMX_PACK_H
#define SCRIMP_CODEGEN_CPU_GEMM_GEMM_AMX_PACK_H

#include "codegen/jit/jit.h"

/* A line is a row of A or a column of B. */
typedef struct AmxPack {
    int64_t line, step; /* elements of the source between lines, between steps; one of them is 1 */
    int64_t squares;    /* of 16 lines: there is room for so many times 32 steps */
    bool paired;        /* as those of B */
} AmxPack;

/* `lines` lines of `steps` steps (i64) from a source of f32 or bf16, as its pointer says, to `to`
 * (p_bf16), with zeros behind the last step.  Lines behind the last one are left as they are. */
void amx_pack(Jit *j, const AmxPack *p, JitValue to, JitValue from, JitValue lines, JitValue steps);

/* Of a line that is not paired, `steps` contiguous ones, a multiple of 32, to those of its squares;
 * from: NULL: zeros. */
void amx_pack_steps(Jit *j, JitValue to, JitValue from, int64_t steps);

#endif
