/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Short names for what formulas in kernels are written in.  Each result is held in a temporary: it
 * is computed once, however often it is used. */
#ifndef SCRIMP_CODEGEN_JIT_JIT_SHORT_H
#define SCRIMP_CODEGEN_JIT_JIT_SHORT_H

#include "codegen/jit/jit.h"

static inline JitValue add(Jit *j, JitValue a, JitValue b)
{
    return jit_tmp(j, jit_add(j, a, b));
}

static inline JitValue sub(Jit *j, JitValue a, JitValue b)
{
    return jit_tmp(j, jit_sub(j, a, b));
}

static inline JitValue mul(Jit *j, JitValue a, JitValue b)
{
    return jit_tmp(j, jit_mul(j, a, b));
}

static inline JitValue divide(Jit *j, JitValue a, JitValue b)
{
    return jit_tmp(j, jit_div(j, a, b));
}

static inline JitValue neg(Jit *j, JitValue a)
{
    return jit_tmp(j, jit_neg(j, a));
}

/* A constant vector of floats. */
static inline JitValue vf(Jit *j, double v)
{
    return jit_tmp(j, jit_vf(j, v));
}

/* One of unsigned words. */
static inline JitValue vu(Jit *j, uint32_t v)
{
    return jit_tmp(j, jit_bitcast(j, jit_tmp(j, jit_vi(j, (int32_t)v)), jit_types(j)->vu));
}

static inline JitValue splat(Jit *j, JitValue scalar)
{
    return jit_tmp(j, jit_splat(j, scalar));
}

/* Takes the lowest digit of *rest, which counts to size (i64). */
static inline JitValue take_digit(Jit *j, JitValue *rest, int64_t size)
{
    JitValue d = jit_tmp(j, jit_mod(j, *rest, jit_i64(j, size)));
    *rest = divide(j, *rest, jit_i64(j, size));
    return d;
}

/* 0 <= at < size, as an i32. */
static inline JitValue inside(Jit *j, JitValue at, int64_t size)
{
    JitType i32 = jit_types(j)->i32;
    return jit_and(j, jit_cast(j, jit_compare(j, JIT_GE, at, jit_i64(j, 0)), i32),
                   jit_cast(j, jit_compare(j, JIT_LT, at, jit_i64(j, size)), i32));
}

/* Buffer i of the kernel, as floats. */
static inline JitValue buf_f32(Jit *j, int i)
{
    return jit_buf(j, i, jit_types(j)->p_f32);
}

#endif
