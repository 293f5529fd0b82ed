/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Comparison, selection, conversion and what goes across lanes.  Every function has a generic path
 * that uses integer and float arithmetic only; jit_x86.c replaces the primitives where the target
 * has an instruction. */
#include "codegen/jit/jit_math_internal.h"

#include "ir/support/bug.h"

/* --- comparison and selection --- */

/* a < b for i32: the sign of a - b, corrected where the signs differ. */
static JitValue generic_int_less(Jit *j, JitValue a, JitValue b)
{
    JitType vu = jit_types(j)->vu, vi = jit_types(j)->vi;
    JitValue ua = jit_tmp(j, jit_bitcast(j, a, vu)), ub = jit_tmp(j, jit_bitcast(j, b, vu));
    JitValue mixed = jit_and(j, ua, jit_not(j, ub));
    JitValue same = jit_and(j, jit_not(j, jit_xor(j, ua, ub)), jit_sub(j, ua, ub));
    JitValue sign = jit_tmp(j, jit_bitcast(j, jit_tmp(j, jit_or(j, mixed, same)), vi));
    return jit_tmp(j, jit_shr(j, sign, jit_vi(j, 31)));
}

static JitValue generic_int_equal(Jit *j, JitValue a, JitValue b)
{
    JitValue d = jit_tmp(j, jit_xor(j, a, b));
    JitValue any = jit_tmp(j, jit_or(j, d, jit_sub(j, jit_vi(j, 0), d)));
    return jit_tmp(j, jit_not(j, jit_shr(j, any, jit_vi(j, 31))));
}

static JitValue generic_int_mask(Jit *j, JitCompare op, JitValue a, JitValue b)
{
    switch (op) {
    case JIT_EQ:
        return generic_int_equal(j, a, b);
    case JIT_NE:
        return jit_tmp(j, jit_not(j, generic_int_equal(j, a, b)));
    case JIT_LT:
        return generic_int_less(j, a, b);
    case JIT_LE:
        return jit_tmp(j, jit_not(j, generic_int_less(j, b, a)));
    case JIT_GT:
        return generic_int_less(j, b, a);
    case JIT_GE:
        return jit_tmp(j, jit_not(j, generic_int_less(j, a, b)));
    }
    BUG("comparison %d", (int)op);
}

/* Integers in the order of the floats they are made from; both zeros become 0. */
static JitValue ordered_bits(Jit *j, JitValue bits)
{
    JitValue s = jit_tmp(j, jit_shr(j, bits, jit_vi(j, 31)));
    return sub(j, jit_xor(j, bits, jit_and(j, s, jit_vi(j, 0x7fffffff))), s);
}

static JitValue generic_is_nan(Jit *j, JitValue bits)
{
    JitValue magnitude = jit_tmp(j, jit_and(j, bits, jit_vi(j, 0x7fffffff)));
    return generic_int_less(j, jit_vi(j, 0x7f800000), magnitude);
}

static JitValue generic_float_mask(Jit *j, JitCompare op, JitValue a, JitValue b)
{
    JitValue ia = as_int(j, a), ib = as_int(j, b);
    JitValue m = generic_int_mask(j, op, ordered_bits(j, ia), ordered_bits(j, ib));
    JitValue nan = jit_tmp(j, jit_or(j, generic_is_nan(j, ia), generic_is_nan(j, ib)));
    return jit_tmp(j, op == JIT_NE ? jit_or(j, m, nan) : jit_and(j, m, jit_not(j, nan)));
}

JitValue jit_vmask(Jit *j, JitCompare op, JitValue a, JitValue b)
{
    if (x86(j))
        return jit_tmp(j, x86_mask(j, op, a, b));
    bool real = jit_type_of(a) == jit_types(j)->vf;
    a = jit_tmp(j, a);
    b = jit_tmp(j, b);
    return real ? generic_float_mask(j, op, a, b) : generic_int_mask(j, op, a, b);
}

JitValue jit_vselect(Jit *j, JitValue mask, JitValue yes, JitValue no)
{
    JitType vi = jit_types(j)->vi, type = jit_type_of(yes);
    JitValue m = jit_tmp(j, mask);
    JitValue y = type == vi ? yes : jit_bitcast(j, jit_tmp(j, yes), vi);
    JitValue n = type == vi ? no : jit_bitcast(j, jit_tmp(j, no), vi);
    JitValue v = jit_tmp(j, jit_or(j, jit_and(j, m, y), jit_and(j, jit_not(j, m), n)));
    return type == vi ? v : jit_tmp(j, jit_bitcast(j, v, type));
}

JitValue jit_vchoose(Jit *j, JitCompare op, JitValue a, JitValue b, JitValue yes, JitValue no)
{
    if (x86(j))
        return x86_choose(j, op, a, b, yes, no);
    return jit_vselect(j, jit_vmask(j, op, a, b), yes, no);
}

/* max(a, b) where b is not NaN unless a result of NaN is wanted: NaN in b passes, NaN in a gives b.
 */
JitValue jit_vmax_keep(Jit *j, JitValue a, JitValue b)
{
    return x86(j) ? x86_max(j, a, b) : jit_vchoose(j, JIT_GT, a, b, a, b);
}

JitValue jit_vmax(Jit *j, JitValue a, JitValue b)
{
    a = jit_tmp(j, a);
    return jit_vchoose(j, JIT_NE, a, a, a, jit_vmax_keep(j, a, jit_tmp(j, b)));
}

JitValue jit_vmin(Jit *j, JitValue a, JitValue b)
{
    a = jit_tmp(j, a);
    return jit_vchoose(j, JIT_NE, a, a, a, min_keep(j, a, jit_tmp(j, b)));
}

JitValue jit_vrelu(Jit *j, JitValue a)
{
    return jit_vmax_keep(j, jit_vf(j, 0), jit_tmp(j, a));
}

JitValue jit_vabs(Jit *j, JitValue a)
{
    return as_float(j, jit_tmp(j, jit_and(j, as_int(j, a), jit_vi(j, 0x7fffffff))));
}

/* --- conversions --- */

JitValue jit_vi_to_vf(Jit *j, JitValue v)
{
    v = jit_tmp(j, v);
    if (x86(j))
        return x86_i32_to_f32(j, v);
    /* Two exact halves, one rounding in the last addition. */
    JitValue high = small_int_to_float(j, jit_tmp(j, jit_shr(j, v, jit_vi(j, 16))));
    JitValue low = small_int_to_float(j, jit_tmp(j, jit_and(j, v, jit_vi(j, 0xffff))));
    return add(j, mul(j, high, jit_vf(j, 65536.0)), low);
}

static JitValue int_min(Jit *j, JitValue a, JitValue b)
{
    return jit_vselect(j, generic_int_less(j, a, b), a, b);
}

static JitValue int_max(Jit *j, JitValue a, JitValue b)
{
    return jit_vselect(j, generic_int_less(j, a, b), b, a);
}

/* Shifts the mantissa by the exponent; numbers outside of i32 give anything. */
static JitValue generic_float_to_int(Jit *j, JitValue v)
{
    JitValue bits = as_int(j, v);
    JitValue sign = jit_tmp(j, jit_shr(j, bits, jit_vi(j, 31)));
    JitValue exponent = jit_tmp(j, jit_and(j, jit_shr(j, bits, jit_vi(j, 23)), jit_vi(j, 0xff)));
    JitValue mantissa =
        jit_tmp(j, jit_or(j, jit_and(j, bits, jit_vi(j, 0x7fffff)), jit_vi(j, 0x800000)));
    JitValue left = sub(j, exponent, jit_vi(j, 150));
    JitValue right = sub(j, jit_vi(j, 0), left);
    left = int_min(j, int_max(j, left, jit_vi(j, 0)), jit_vi(j, 8));
    right = int_min(j, int_max(j, right, jit_vi(j, 0)), jit_vi(j, 31));
    JitValue magnitude = jit_tmp(j, jit_shr(j, jit_tmp(j, jit_shl(j, mantissa, left)), right));
    return sub(j, jit_xor(j, magnitude, sign), sign);
}

JitValue jit_vf_to_vi(Jit *j, JitValue v)
{
    v = jit_tmp(j, v);
    return x86(j) ? x86_f32_to_i32(j, v) : generic_float_to_int(j, v);
}

JitValue jit_vload_bytes(Jit *j, JitValue pointer, JitValue index)
{
    JitValue lane[16];
    if (x86_has_masks(j))
        return x86_load_bytes(j, jit_offset(j, pointer, index));
    JitValue first = jit_tmp(j, index);
    for (int i = 0; i < jit_lanes(j); i++)
        lane[i] =
            jit_cast(j, jit_load(j, pointer, jit_add(j, first, jit_i64(j, i))), jit_types(j)->i32);
    return jit_tmp(j, jit_from_lanes(j, jit_types(j)->vi, lane));
}

/* --- across lanes --- */

typedef JitValue Combine(Jit *j, JitValue a, JitValue b);

static JitValue scalar_max(Jit *j, JitValue a, JitValue b)
{
    JitVar m = jit_var(j, jit_types(j)->f32, "max");
    jit_set(j, m, a);
    JitIf s = jit_if(j, jit_compare(j, JIT_GT, b, a));
    jit_set(j, m, b);
    jit_end_if(j, &s);
    return jit_get(m);
}

/* Halves onto halves, in the order of jit_x86.c. */
static JitValue generic_fold(Jit *j, Combine *combine, JitValue v)
{
    JitValue lane[16];
    int n = jit_lanes(j);
    v = jit_tmp(j, v);
    for (int i = 0; i < n; i++)
        lane[i] = jit_lane(j, v, i);
    for (; n > 1; n /= 2)
        for (int i = 0; i < n / 2; i++)
            lane[i] = jit_tmp(j, combine(j, lane[i], lane[i + n / 2]));
    return lane[0];
}

JitValue jit_hsum(Jit *j, JitValue v)
{
    return x86(j) ? x86_hsum(j, v) : generic_fold(j, jit_add, v);
}

JitValue jit_hmax(Jit *j, JitValue v)
{
    return x86(j) ? x86_hmax(j, v) : generic_fold(j, scalar_max, v);
}

JitValue jit_lane_numbers(Jit *j)
{
    JitValue lane[16];
    for (int i = 0; i < jit_lanes(j); i++)
        lane[i] = jit_i32(j, i);
    return jit_tmp(j, jit_from_lanes(j, jit_types(j)->vi, lane));
}

JitValue jit_lane_bits(Jit *j)
{
    JitValue lane[16];
    for (int i = 0; i < jit_lanes(j); i++)
        lane[i] = jit_i32(j, 1 << i);
    return jit_tmp(j, jit_from_lanes(j, jit_types(j)->vi, lane));
}

JitValue jit_mask_bits(Jit *j, JitValue mask)
{
    if (x86(j))
        return x86_mask_bits(j, mask);
    return generic_fold(j, jit_or, jit_tmp(j, jit_and(j, mask, jit_lane_bits(j))));
}

/* Schoolbook product of 16-bit halves. */
static void generic_mul_wide(Jit *j, JitValue a, JitValue b, JitValue *high, JitValue *low)
{
    JitType vu = jit_types(j)->vu;
    JitValue half = jit_tmp(j, jit_bitcast(j, jit_tmp(j, jit_vi(j, 16)), vu));
    JitValue mask = jit_tmp(j, jit_bitcast(j, jit_tmp(j, jit_vi(j, 0xffff)), vu));
    JitValue al = jit_tmp(j, jit_and(j, a, mask)), ah = jit_tmp(j, jit_shr(j, a, half));
    JitValue bl = jit_tmp(j, jit_and(j, b, mask)), bh = jit_tmp(j, jit_shr(j, b, half));
    JitValue ll = mul(j, al, bl), lh = mul(j, al, bh), hl = mul(j, ah, bl), hh = mul(j, ah, bh);
    JitValue carry = add(j, jit_shr(j, ll, half), jit_and(j, lh, mask));
    carry = add(j, carry, jit_and(j, hl, mask));
    JitValue upper = add(j, hh, jit_add(j, jit_shr(j, lh, half), jit_shr(j, hl, half)));
    *high = add(j, upper, jit_shr(j, carry, half));
    *low = mul(j, a, b);
}

void jit_vmul_wide(Jit *j, JitValue a, JitValue b, JitValue *high, JitValue *low)
{
    a = jit_tmp(j, a);
    b = jit_tmp(j, b);
    if (x86(j))
        x86_mul_wide(j, a, b, high, low);
    else
        generic_mul_wide(j, a, b, high, low);
}
