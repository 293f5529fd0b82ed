/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The matrix registers of x86, Intel's Advanced Matrix Extensions, and the conversions of AVX-512
 * that fill them: for targets that have them (target->amx), whose vectors have 16 lanes. */
#ifndef SCRIMP_CODEGEN_JIT_JIT_AMX_H
#define SCRIMP_CODEGEN_JIT_JIT_AMX_H

#include "codegen/jit/jit.h"

/* A register has so many rows of so many bytes: 16 x 16 sums of f32, or 16 x 32 factors in bf16. */
enum { AMX_ROWS = 16, AMX_ROW_BYTES = 64, AMX_STEPS = 32 };

/* Between these two the registers may be used, by the thread that is here. */
void amx_begin(Jit *j);
void amx_end(Jit *j);
/* Asks the system to let this process use the registers, as a step does when it begins. */
void amx_ask_permission(Jit *j);

/* Registers are 0..7; pointers of any type; stride: i64, bytes from row to row in memory. */
void amx_zero(Jit *j, int to);
void amx_load(Jit *j, int to, JitValue pointer, JitValue stride);
void amx_store(Jit *j, int from, JitValue pointer, JitValue stride);
/* The sums of ir/product.h over 32 steps: b has a row for every pair of steps, with 16 pairs. */
void amx_multiply_add(Jit *j, int sum, int a, int b);

/* Vectors of 16 pairs of bf16, as vi; the first of a pair is the lower half. */
/* Elements 0..31, of two vectors of f32: element 2i and 2i + 1 are pair i. */
JitValue amx_round(Jit *j, JitValue low, JitValue high);
/* Element i of both as pair i; of f32, and of bf16 at two pointers. */
JitValue amx_round_pairs(Jit *j, JitValue first, JitValue second);
JitValue amx_load_pairs(Jit *j, JitValue first, JitValue second);

#endif
