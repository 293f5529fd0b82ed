/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Short names for the files of vector mathematics: every intermediate result is evaluated once. */
#ifndef SCRIMP_CODEGEN_JIT_JIT_MATH_INTERNAL_H
#define SCRIMP_CODEGEN_JIT_JIT_MATH_INTERNAL_H

#include "codegen/jit/jit_short.h"
#include "codegen/jit/jit_x86.h"

#define N_OF(a) ((int)(sizeof(a) / sizeof *(a)))

static inline bool x86(const Jit *j)
{
    return jit_target(j)->x86;
}

static inline bool avx512(const Jit *j)
{
    return x86(j) && jit_lanes(j) == 16;
}

static inline bool has_fma(const Jit *j)
{
    return x86(j) && jit_target(j)->fma;
}

static inline JitValue as_int(Jit *j, JitValue a)
{
    return jit_tmp(j, jit_bitcast(j, a, jit_types(j)->vi));
}

static inline JitValue as_float(Jit *j, JitValue a)
{
    return jit_tmp(j, jit_bitcast(j, a, jit_types(j)->vf));
}

/* a*b + c: fused where the target is x86 with FMA (spelled out, so that it does not depend on
 * -ffp-contract). */
static inline JitValue muladd(Jit *j, JitValue a, JitValue b, JitValue c)
{
    return has_fma(j) ? x86_fma(j, a, b, c) : add(j, mul(j, a, b), c);
}

/* c - a*b */
static inline JitValue mulsub(Jit *j, JitValue a, JitValue b, JitValue c)
{
    return has_fma(j) ? x86_fnma(j, a, b, c) : sub(j, c, mul(j, a, b));
}

/* Highest coefficient first. */
static inline JitValue horner(Jit *j, JitValue x, const double *c, int n)
{
    JitValue p = jit_vf(j, c[0]);
    for (int i = 1; i < n; i++)
        p = muladd(j, p, x, jit_vf(j, c[i]));
    return p;
}

static inline JitValue sign_bit(Jit *j, JitValue a)
{
    return jit_tmp(j, jit_and(j, as_int(j, a), jit_vi(j, INT32_MIN)));
}

static inline JitValue flip_sign(Jit *j, JitValue a, JitValue sign)
{
    return as_float(j, jit_tmp(j, jit_xor(j, as_int(j, a), sign)));
}

static inline JitValue min_keep(Jit *j, JitValue a, JitValue b)
{
    return x86(j) ? x86_min(j, a, b) : jit_vchoose(j, JIT_LT, a, b, a, b);
}

/* A float plus 1.5 * 2^23 holds the nearest whole number in its low bits. */
#define ROUND_MAGIC 12582912.0
enum { ROUND_MAGIC_BITS = 0x4b400000 };

/* |v| < 2^22, exactly. */
static inline JitValue small_int_to_float(Jit *j, JitValue v)
{
    JitValue shifted = as_float(j, add(j, v, jit_vi(j, ROUND_MAGIC_BITS)));
    return sub(j, shifted, jit_vf(j, ROUND_MAGIC));
}

#endif
