/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Vector instructions of x86 that libgccjit 12 has no other way to name.  Only jit_math.c,
 * jit_bf16.c and jit_values.c call these, and only when the target allows them (target->x86); the
 * generic forms stand beside each call there. */
#ifndef SCRIMP_CODEGEN_JIT_JIT_X86_H
#define SCRIMP_CODEGEN_JIT_JIT_X86_H

#include "codegen/jit/jit.h"

/* The instructions' own rule for NaN: b when either is NaN. */
JitValue x86_max(Jit *j, JitValue a, JitValue b);
JitValue x86_min(Jit *j, JitValue a, JitValue b);
JitValue x86_sqrt(Jit *j, JitValue a);
/* a*b + c and c - a*b with one rounding; target->fma. */
JitValue x86_fma(Jit *j, JitValue a, JitValue b, JitValue c);
JitValue x86_fnma(Jit *j, JitValue a, JitValue b, JitValue c);
/* vi of 0 / -1; f32 or i32 vectors. */
JitValue x86_mask(Jit *j, JitCompare op, JitValue a, JitValue b);
/* yes where a op b holds, else no, for f32 comparisons. */
JitValue x86_choose(Jit *j, JitCompare op, JitValue a, JitValue b, JitValue yes, JitValue no);
/* vi of 0 / -1 -> i32, lane k in bit k. */
JitValue x86_mask_bits(Jit *j, JitValue mask);
JitValue x86_i32_to_f32(Jit *j, JitValue v);
JitValue x86_f32_to_i32(Jit *j, JitValue v); /* truncation */
JitValue x86_hsum(Jit *j, JitValue v);
JitValue x86_hmax(Jit *j, JitValue v); /* NaN may be lost */
/* AVX-512 only (16 lanes): p * 2^n for a whole number n, with gradual underflow; a rounded to whole
 * numbers. */
JitValue x86_scale(Jit *j, JitValue p, JitValue n);
JitValue x86_round(Jit *j, JitValue a);
/* AVX2 and later: the first n lanes (1 <= n <= lanes, i64) at a pointer to f32 or i32; the others
 * are `rest`, and are not touched in memory. */
bool x86_has_masks(const Jit *j);
JitValue x86_load_masked(Jit *j, JitValue pointer, JitValue n, JitValue rest);
void x86_store_masked(Jit *j, JitValue pointer, JitValue n, JitValue v);
/* AVX2 and later: bytes, as many as lanes, zero-extended to i32. */
JitValue x86_load_bytes(Jit *j, JitValue pointer);
/* 16-bit words, as many as lanes: zero-extended to i32, and back from i32 of 0..65535; 8 lanes and
 * more. */
JitValue x86_words_to_i32(Jit *j, JitValue words);
JitValue x86_i32_to_words(Jit *j, JitValue v, JitType words);
/* 4 lanes: each word in both halves of an i32; the upper halves stored as words. */
JitValue x86_load_words(Jit *j, JitValue pointer);
void x86_store_words(Jit *j, JitValue pointer, JitValue v);
/* High and low words of the 64-bit products a*b of u32 vectors. */
void x86_mul_wide(Jit *j, JitValue a, JitValue b, JitValue *high, JitValue *low);

#endif
