/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Exponential, logarithm, sine, error function and what is made of them.  Polynomials were fitted
 * by Remez exchange in 50 digits; each comment gives the maximal error of the fit.  Accuracy in ulp
 * is tested in tests/unit/codegen/test_math.c. */
#include "codegen/jit/jit_math_internal.h"

JitValue jit_vfma(Jit *j, JitValue a, JitValue b, JitValue c)
{
    return muladd(j, jit_tmp(j, a), jit_tmp(j, b), jit_tmp(j, c));
}

JitValue jit_vsqrt(Jit *j, JitValue a)
{
    if (x86(j))
        return x86_sqrt(j, a);
    JitValue lane[16];
    a = jit_tmp(j, a);
    for (int i = 0; i < jit_lanes(j); i++) {
        JitValue x = jit_lane(j, a, i);
        lane[i] = jit_builtin(j, "__builtin_sqrtf", 1, &x);
    }
    return jit_tmp(j, jit_from_lanes(j, jit_types(j)->vf, lane));
}

/* 2^n for -126 <= n <= 127 */
static JitValue power_of_two(Jit *j, JitValue n)
{
    return as_float(j, jit_tmp(j, jit_shl(j, add(j, n, jit_vi(j, 127)), jit_vi(j, 23))));
}

/* p * 2^n in two steps, so that overflow comes out right. */
static JitValue scale_by_parts(Jit *j, JitValue p, JitValue n)
{
    JitValue half = jit_tmp(j, jit_shr(j, n, jit_vi(j, 1)));
    JitValue rest = sub(j, n, half);
    return mul(j, mul(j, p, power_of_two(j, half)), power_of_two(j, rest));
}

/* e^r - 1 = r + r^2 P(r) for |r| <= ln2/2; error 5.4e-11. */
static JitValue expm1_reduced(Jit *j, JitValue r)
{
    static const double c[] = {1.9789816018270299e-4, 1.3945198890345591e-3, 8.3335003501069407e-3,
                               4.1666287768769179e-2, 1.6666665845030883e-1, 5.0000000696296912e-1};
    JitValue p = horner(j, r, c, N_OF(c));
    return muladd(j, p, mul(j, r, r), r);
}

#define LOG2_E 1.44269504088896341

/* n, the whole number next to x / ln2; *whole: as vi. */
static JitValue whole_ln2(Jit *j, JitValue x, JitValue *whole)
{
    JitValue t = add(j, mul(j, x, jit_vf(j, LOG2_E)), jit_vf(j, ROUND_MAGIC));
    *whole = sub(j, as_int(j, t), jit_vi(j, ROUND_MAGIC_BITS));
    return sub(j, t, jit_vf(j, ROUND_MAGIC));
}

/* x - n ln2.  ln2 in two parts, the first with nine bits: n times it is exact. */
static JitValue without_ln2(Jit *j, JitValue x, JitValue n)
{
    const double ln2_high = 0.693359375, ln2_low = -2.12194440e-4;
    return mulsub(j, n, jit_vf(j, ln2_low), mulsub(j, n, jit_vf(j, ln2_high), x));
}

/* The least x whose e^x is no denormal number. */
#define LEAST_EXP (-0x1.5d589e0000000p+6)

/* e^x with x = n ln2 + r; 0 below 2^-126, where it would hang on the instruction and on the mode of
 * the processor whether there are numbers. */
JitValue jit_vexp(Jit *j, JitValue a)
{
    JitValue x = jit_tmp(j, a), n, whole = NULL;
    x = jit_vmax_keep(j, jit_vf(j, -88), min_keep(j, jit_vf(j, 89), x));
    if (avx512(j))
        n = x86_round(j, mul(j, x, jit_vf(j, LOG2_E)));
    else
        n = whole_ln2(j, x, &whole);
    JitValue p = add(j, expm1_reduced(j, without_ln2(j, x, n)), jit_vf(j, 1));
    JitValue y = avx512(j) ? x86_scale(j, p, n) : scale_by_parts(j, p, whole);
    return jit_vchoose(j, JIT_LT, x, jit_vf(j, LEAST_EXP), jit_vf(j, 0), y);
}

/* The same bits without the steps that large results alone need: 2^n + 2^n (e^r - 1) is rounded
 * once where there is FMA; without it a denormal product would be lost.  Below LEAST_EXP whatever
 * comes out is not chosen. */
JitValue jit_vexp_below(Jit *j, JitValue a)
{
    JitValue x = jit_tmp(j, a), whole, n = whole_ln2(j, x, &whole), scale = power_of_two(j, whole);
    JitValue q = expm1_reduced(j, without_ln2(j, x, n));
    JitValue y = has_fma(j) ? x86_fma(j, q, scale, scale) : mul(j, add(j, q, jit_vf(j, 1)), scale);
    return jit_vchoose(j, JIT_LT, x, jit_vf(j, LEAST_EXP), jit_vf(j, 0), y);
}

/* With x = n ln2 + r: 2^n (e^r - 1) + (2^n - 1), both with their relative accuracy. */
JitValue jit_vexpm1_negative(Jit *j, JitValue a)
{
    JitValue x = jit_vmax_keep(j, jit_vf(j, -30), min_keep(j, jit_vf(j, 0), jit_tmp(j, a))), whole;
    JitValue n = whole_ln2(j, x, &whole), scale = power_of_two(j, whole);
    JitValue q = expm1_reduced(j, without_ln2(j, x, n));
    return muladd(j, scale, q, sub(j, scale, jit_vf(j, 1)));
}

/* log(1+f) = f - f^2/2 + f^3 P(f) for sqrt(1/2) <= 1+f <= sqrt(2); relative error 7.5e-10. */
static JitValue log_mantissa(Jit *j, JitValue f, JitValue exponent)
{
    static const double c[] = {
        6.7466255442152954e-2,  -1.1675631588125611e-1, 1.1888153171824042e-1,
        -1.2405589838638770e-1, 1.4219554017250520e-1,  -1.6667996047017649e-1,
        2.0002118586263069e-1,  -2.5000009589110478e-1, 3.3333312604886634e-1};
    JitValue z = mul(j, f, f);
    JitValue y = mul(j, mul(j, horner(j, f, c, N_OF(c)), f), z);
    y = mulsub(j, exponent, jit_vf(j, 2.12194440e-4), y);
    y = mulsub(j, jit_vf(j, 0.5), z, y);
    return muladd(j, exponent, jit_vf(j, 0.693359375), add(j, f, y));
}

/* 0 -> -inf, negative -> NaN, inf and NaN as they are. */
static JitValue log_specials(Jit *j, JitValue x, JitValue y)
{
    JitValue inf = as_float(j, jit_vi(j, 0x7f800000));
    y = jit_vchoose(j, JIT_LT, x, inf, y, x);
    y = jit_vchoose(j, JIT_GE, x, jit_vf(j, 0), y, as_float(j, jit_vi(j, 0x7fc00000)));
    return jit_vchoose(j, JIT_EQ, x, jit_vf(j, 0), as_float(j, jit_vi(j, (int32_t)0xff800000)), y);
}

JitValue jit_vlog(Jit *j, JitValue a)
{
    enum { SQRT_HALF_BITS = 0x3f3504f3 };
    JitValue x = jit_tmp(j, a), tiny = jit_vf(j, 0x1p-126);
    JitValue scaled = jit_vchoose(j, JIT_LT, x, tiny, mul(j, x, jit_vf(j, 0x1p23)), x);
    JitValue shift = jit_vchoose(j, JIT_LT, x, tiny, jit_vf(j, -23), jit_vf(j, 0));
    JitValue bits = as_int(j, scaled);
    JitValue e = jit_tmp(j, jit_shr(j, sub(j, bits, jit_vi(j, SQRT_HALF_BITS)), jit_vi(j, 23)));
    JitValue m = as_float(j, sub(j, bits, jit_shl(j, e, jit_vi(j, 23))));
    JitValue exponent = add(j, small_int_to_float(j, e), shift);
    return log_specials(j, x, log_mantissa(j, sub(j, m, jit_vf(j, 1)), exponent));
}

/* log(1+e) = log(u) + (1+e - u) / u, where u is 1+e rounded: 1+e - u is exact (Fast2Sum). */
JitValue jit_vlog1p_fraction(Jit *j, JitValue a)
{
    JitValue e = jit_tmp(j, a), one = jit_vf(j, 1), sqrt2 = jit_vf(j, 1.41421356237309505);
    JitValue u = add(j, e, one), lost = sub(j, e, sub(j, u, one));
    JitValue m = jit_vchoose(j, JIT_GT, u, sqrt2, mul(j, u, jit_vf(j, 0.5)), u);
    JitValue exponent = jit_vchoose(j, JIT_GT, u, sqrt2, one, jit_vf(j, 0));
    return add(j, log_mantissa(j, sub(j, m, one), exponent), divide(j, lost, u));
}

/* x = n pi/2 + r, |r| <= pi/4; quarter: n as vi.  pi/2 in six parts (Cody and Waite 1980), five of
 * them of eight bits: for |n| < 2^16 their products with n are exact with and without FMA, and so
 * are the first three differences.  What the fourth loses is added with the last parts (Fast2Sum,
 * Dekker 1971; where n part[3] is larger than r, their difference is exact), so that r is rounded
 * once. */
static JitValue quarter_turns(Jit *j, JitValue x, JitValue *quarter)
{
    static const double part[] = {0x1.92p+0, 0x1.fap-12, 0x1.54p-20,
                                  0x1.1p-30, 0x1.68p-39, 5.390302858158119e-15};
    JitValue t = add(j, mul(j, x, jit_vf(j, 0.63661977236758134)), jit_vf(j, ROUND_MAGIC));
    JitValue n = sub(j, t, jit_vf(j, ROUND_MAGIC)), r = x;
    for (int i = 0; i < 3; i++)
        r = mulsub(j, n, jit_vf(j, part[i]), r);
    JitValue high = mulsub(j, n, jit_vf(j, part[3]), r);
    JitValue lost = mulsub(j, n, jit_vf(j, part[3]), sub(j, r, high));
    JitValue rest = muladd(j, n, jit_vf(j, part[4]), mul(j, n, jit_vf(j, part[5])));
    r = add(j, high, sub(j, lost, rest));
    *quarter = as_int(j, t); /* its low bits; those of the magic number are 0 */
    return r;
}

/* sin r = r + r^3 S(r^2), relative error 3.8e-9; cos r = 1 - r^2/2 + r^4 C(r^2), 1.2e-10. */
static JitValue sine_of_quarter(Jit *j, JitValue r, JitValue quarter)
{
    static const double s[] = {-1.9515218093222282e-4, 8.332160291705406e-3,
                               -1.6666654602273417e-1};
    static const double c[] = {2.443308268457726e-5, -1.3887315616463013e-3, 4.166664567015449e-2};
    JitValue z = mul(j, r, r);
    JitValue sine = muladd(j, mul(j, horner(j, z, s, N_OF(s)), z), r, r);
    JitValue cosine = mulsub(j, jit_vf(j, 0.5), z, jit_vf(j, 1));
    cosine = muladd(j, mul(j, horner(j, z, c, N_OF(c)), z), z, cosine);
    JitValue odd = jit_tmp(j, jit_and(j, quarter, jit_vi(j, 1)));
    JitValue y = jit_vselect(j, sub(j, jit_vi(j, 0), odd), cosine, sine);
    JitValue half = jit_tmp(j, jit_and(j, quarter, jit_vi(j, 2)));
    return flip_sign(j, y, jit_tmp(j, jit_shl(j, half, jit_vi(j, 30))));
}

static JitValue angle_or_nan(Jit *j, JitValue x, JitValue y)
{
    JitValue nan = as_float(j, jit_vi(j, 0x7fc00000));
    return jit_vchoose(j, JIT_LT, jit_vabs(j, x), jit_vf(j, JIT_ANGLE_MAX), y, nan);
}

/* On |x|, with the sign of x put back: sin(-0) is -0. */
JitValue jit_vsin(Jit *j, JitValue a)
{
    JitValue x = jit_tmp(j, a), size = jit_vabs(j, x), quarter;
    JitValue r = quarter_turns(j, size, &quarter);
    JitValue y = flip_sign(j, sine_of_quarter(j, r, quarter), sign_bit(j, x));
    return angle_or_nan(j, x, y);
}

JitValue jit_vcos(Jit *j, JitValue a)
{
    JitValue x = jit_tmp(j, a), quarter;
    JitValue r = quarter_turns(j, jit_vabs(j, x), &quarter);
    quarter = add(j, quarter, jit_vi(j, 1));
    return angle_or_nan(j, x, sine_of_quarter(j, r, quarter));
}

JitValue jit_vsigmoid(Jit *j, JitValue a)
{
    JitValue e = jit_vexp(j, jit_neg(j, jit_tmp(j, a)));
    return divide(j, jit_vf(j, 1), add(j, e, jit_vf(j, 1)));
}

/* Near 0: x + x^3 P(x^2), relative error 4.1e-9 for |x| < 0.625; else 1 - 2/(e^2|x| + 1). */
JitValue jit_vtanh(Jit *j, JitValue a)
{
    static const double c[] = {-5.7170416392301337e-3, 2.0650584319815536e-2,
                               -5.3743497222803891e-2, 1.3331491277694356e-1,
                               -3.3333283924937059e-1};
    JitValue x = jit_tmp(j, a), size = jit_vabs(j, x);
    JitValue e = jit_vexp(j, add(j, size, size));
    JitValue big = divide(j, jit_vf(j, 2), add(j, e, jit_vf(j, 1)));
    big = sub(j, jit_vf(j, 1), big);
    JitValue z = mul(j, size, size);
    JitValue small = muladd(j, mul(j, horner(j, z, c, N_OF(c)), z), size, size);
    JitValue y = jit_vchoose(j, JIT_LT, size, jit_vf(j, 0.625), small, big);
    return flip_sign(j, y, sign_bit(j, x));
}

/* erfc(t) = exp(-t^2) u P(u) with u = 1/(1 + 0.3 t), t >= 0; relative error 2.0e-8 up to t = 11,
 * past which the result is 0.  square: t^2; t^2 and t in proportion even when t was rounded. */
static JitValue erfc_positive(Jit *j, JitValue t, JitValue exp_minus_square)
{
    static const double c[] = {
        -1.2955577909669636e-1, 4.8573598362827742e-1,  -5.1266734367023379e-1,
        5.4821032455418282e-1,  -9.5027763962128832e-2, 2.1510703348134851e-1,
        1.4828630532867067e-1,  1.7072380631877626e-1,  1.6918741378521035e-1};
    JitValue u = divide(j, jit_vf(j, 1), muladd(j, t, jit_vf(j, 0.3), jit_vf(j, 1)));
    return mul(j, mul(j, horner(j, u, c, N_OF(c)), u), exp_minus_square);
}

/* The normal distribution's cdf and, when density is not NULL, its density.  Relative accuracy
 * holds in the left tail, where 1 + erf would cancel. */
JitValue jit_vnormal_cdf(Jit *j, JitValue a, JitValue *density)
{
    JitValue x = jit_tmp(j, a);
    JitValue e = jit_vexp_below(j, mul(j, mul(j, x, x), jit_vf(j, -0.5)));
    JitValue t = mul(j, jit_vabs(j, x), jit_vf(j, 0.70710678118654752));
    JitValue half = mul(j, erfc_positive(j, t, e), jit_vf(j, 0.5));
    if (density)
        *density = mul(j, e, jit_vf(j, 0.39894228040143268));
    return jit_vchoose(j, JIT_LT, x, jit_vf(j, 0), half, sub(j, jit_vf(j, 1), half));
}

/* Near 0: x + x P(x^2), relative error 1.5e-9 for |x| < 0.75; else 1 - erfc|x|. */
JitValue jit_verf(Jit *j, JitValue a)
{
    static const double c[] = {-6.7495191233163673e-4, 5.1143463150214109e-3,
                               -2.6834624907792339e-2, 1.1283376580531636e-1,
                               -3.7612618757201275e-1, 1.2837916549659526e-1};
    JitValue x = jit_tmp(j, a), size = jit_vabs(j, x), z = mul(j, size, size);
    JitValue small = muladd(j, horner(j, z, c, N_OF(c)), size, size);
    JitValue big = sub(j, jit_vf(j, 1), erfc_positive(j, size, jit_vexp_below(j, neg(j, z))));
    JitValue y = jit_vchoose(j, JIT_LT, size, jit_vf(j, 0.75), small, big);
    return flip_sign(j, y, sign_bit(j, x));
}

/* Sign of a^b for negative a: NaN unless b is whole, - when it is odd. */
static JitValue power_sign(Jit *j, JitValue a, JitValue b, JitValue magnitude)
{
    JitValue whole = jit_vf_to_vi(j, b), size = jit_vabs(j, b);
    JitValue is_whole = jit_vmask(j, JIT_EQ, jit_vi_to_vf(j, whole), b);
    JitValue large = jit_vmask(j, JIT_GE, size, jit_vf(j, 0x1p24)); /* even, or infinite */
    JitValue odd = jit_tmp(j, jit_and(j, jit_shl(j, whole, jit_vi(j, 31)), jit_not(j, large)));
    JitValue sign = jit_tmp(j, jit_and(j, jit_and(j, odd, is_whole), sign_bit(j, a)));
    JitValue defined =
        jit_tmp(j, jit_or(j, jit_or(j, is_whole, large), jit_vmask(j, JIT_GE, a, jit_vf(j, 0))));
    JitValue nan = as_float(j, jit_vi(j, 0x7fc00000));
    return jit_vselect(j, defined, flip_sign(j, magnitude, sign), nan);
}

/* exp(b log|a|): the relative error grows as |b log a| * 2^-24. */
JitValue jit_vpow(Jit *j, JitValue a, JitValue b)
{
    a = jit_tmp(j, a);
    b = jit_tmp(j, b);
    JitValue one = jit_vf(j, 1);
    JitValue m = jit_vexp(j, mul(j, b, jit_vlog(j, jit_vabs(j, a))));
    m = power_sign(j, a, b, m);
    m = jit_vchoose(j, JIT_NE, b, b, b, m);
    m = jit_vchoose(j, JIT_NE, a, a, a, m);
    m = jit_vchoose(j, JIT_EQ, b, jit_vf(j, 0), one, m);
    return jit_vchoose(j, JIT_EQ, a, one, one, m);
}
