/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Activations and their gradients on vectors; see point_ops.c. */
#include "codegen/cpu/point/point_jit.h"
#include "codegen/jit/jit_short.h"

#include <math.h>

#define SQRT_2_OVER_PI 0.79788456080286535588
#define GELU_CUBIC     0.044715 /* Hendrycks and Gimpel 2016, tanh form */

/* The tanh form is x * sigmoid(2 z): no cancellation on the left. */
static JitValue gelu_gate(Jit *j, JitValue x, JitValue *square)
{
    *square = mul(j, x, x);
    JitValue inner = jit_vfma(j, *square, jit_vf(j, GELU_CUBIC), jit_vf(j, 1));
    return jit_vsigmoid(j, mul(j, mul(j, x, inner), jit_vf(j, 2 * SQRT_2_OVER_PI)));
}

static JitValue gelu(Jit *j, const PointInstr *p, const JitValue *in)
{
    JitValue square, x = in[0];
    return mul(j, x, p->flag ? gelu_gate(j, x, &square) : jit_vnormal_cdf(j, x, NULL));
}

static JitValue silu(Jit *j, JitValue x)
{
    return mul(j, x, jit_vsigmoid(j, x));
}

static JitValue scaled(Jit *j, JitValue x, double by)
{
    return by == 1 ? x : mul(j, x, vf(j, by));
}

static JitValue leaky_relu(Jit *j, const PointInstr *p, const JitValue *in)
{
    JitValue x = in[0];
    return jit_vchoose(j, JIT_GT, x, jit_vf(j, 0), x, scaled(j, x, p->a));
}

static JitValue elu(Jit *j, const PointInstr *p, const JitValue *in)
{
    JitValue x = in[0], below = scaled(j, jit_vexpm1_negative(j, x), p->a);
    return jit_vchoose(j, JIT_GT, x, jit_vf(j, 0), x, below);
}

/* log(1 + e^z) = max(z, 0) + log(1 + e^-|z|), z = beta x; past 20 that is z to the last digit, and
 * z itself may overflow. */
static JitValue softplus(Jit *j, const PointInstr *p, const JitValue *in)
{
    JitValue z = scaled(j, in[0], p->a);
    JitValue fraction = jit_vlog1p_fraction(j, jit_vexp(j, neg(j, jit_vabs(j, z))));
    JitValue y = add(j, jit_vrelu(j, z), fraction);
    if (p->a == 1)
        return y;
    return jit_vchoose(j, JIT_GT, z, jit_vf(j, 20), in[0], divide(j, y, vf(j, p->a)));
}

/* tanh(log(1 + e^x)) = n / (n + 2q) and its complement 2q / (n + 2q), where with v = e^-|x| n is
 * 1 + 2v and q is v^2, or both times e^2x where x <= 0: nothing cancels or overflows. */
static JitValue mish_parts(Jit *j, JitValue x, JitValue *v, JitValue *q)
{
    JitValue one = jit_vf(j, 1), two = jit_vf(j, 2), zero = jit_vf(j, 0);
    *v = jit_vexp(j, neg(j, jit_vabs(j, x)));
    *q = jit_vchoose(j, JIT_GT, x, zero, mul(j, *v, *v), one);
    return jit_vchoose(j, JIT_GT, x, zero, add(j, mul(j, *v, two), one),
                       mul(j, *v, add(j, *v, two)));
}

static JitValue mish(Jit *j, JitValue x)
{
    JitValue v, q, n = mish_parts(j, x, &v, &q);
    return mul(j, x, divide(j, n, add(j, n, add(j, q, q))));
}

/* With t the tanh: t + x sigmoid(x) (1 - t^2) */
static JitValue mish_slope(Jit *j, JitValue x)
{
    JitValue v, q, n = mish_parts(j, x, &v, &q), one = jit_vf(j, 1);
    JitValue d = add(j, n, add(j, q, q)), t = divide(j, n, d);
    JitValue gate = jit_vchoose(j, JIT_GT, x, jit_vf(j, 0), one, v);
    gate = divide(j, gate, add(j, v, one));
    JitValue rest = mul(j, divide(j, add(j, q, q), d), add(j, t, one));
    return add(j, t, mul(j, mul(j, x, gate), rest));
}

static JitValue hardswish(Jit *j, JitValue x)
{
    JitValue s = jit_vmin(j, jit_vmax(j, add(j, x, jit_vf(j, 3)), jit_vf(j, 0)), jit_vf(j, 6));
    return mul(j, x, divide(j, s, jit_vf(j, 6)));
}

static JitValue clamp(Jit *j, const PointInstr *p, const JitValue *in)
{
    JitValue x = in[0];
    if (isfinite(p->a))
        x = jit_vmax(j, x, jit_vf(j, p->a));
    return isfinite(p->b) ? jit_vmin(j, x, jit_vf(j, p->b)) : x;
}

/* y' of x * s(u(x)): s + x s (1 - s) u' */
static JitValue gate_slope(Jit *j, JitValue x, JitValue s, JitValue inner_slope)
{
    JitValue t = mul(j, mul(j, x, s), sub(j, jit_vf(j, 1), s));
    return add(j, s, inner_slope ? mul(j, t, inner_slope) : t);
}

static JitValue gelu_slope(Jit *j, const PointInstr *p, JitValue x)
{
    JitValue density, square;
    if (!p->flag) {
        JitValue cdf = jit_vnormal_cdf(j, x, &density);
        return add(j, cdf, mul(j, x, density));
    }
    /* Far out the slope is 0 or 1; x^2 must not overflow. */
    x = jit_vmax(j, jit_vmin(j, x, jit_vf(j, 32)), jit_vf(j, -32));
    JitValue s = gelu_gate(j, x, &square);
    JitValue u = jit_vfma(j, square, jit_vf(j, 6 * SQRT_2_OVER_PI * GELU_CUBIC),
                          jit_vf(j, 2 * SQRT_2_OVER_PI));
    return gate_slope(j, x, s, u);
}

/* --- gradients of activations: (dy, what the forward saved) --- */

/* dy where the saved value was not above 0: times the slope, or 0 whatever it is. */
static JitValue below_zero(Jit *j, const PointInstr *p, JitValue dy)
{
    return p->flag ? scaled(j, dy, p->a) : vf(j, 0);
}

static JitValue relu_grad(Jit *j, const PointInstr *p, const JitValue *in)
{
    return jit_vchoose(j, JIT_GT, in[1], jit_vf(j, 0), in[0], below_zero(j, p, in[0]));
}

static JitValue relu_mask_grad(Jit *j, const PointInstr *p, const JitValue *in)
{
    return jit_vselect(j, in[1], in[0], below_zero(j, p, in[0]));
}

static JitValue elu_grad(Jit *j, const PointInstr *p, const JitValue *in)
{
    JitValue dy = in[0], y = in[1], below = mul(j, dy, add(j, y, jit_vf(j, p->a)));
    return jit_vchoose(j, JIT_LE, y, jit_vf(j, 0), below, dy);
}

static JitValue softplus_grad(Jit *j, const PointInstr *p, const JitValue *in)
{
    return mul(j, in[0], neg(j, jit_vexpm1_negative(j, scaled(j, in[1], -p->a))));
}

static JitValue mish_grad(Jit *j, JitValue dy, JitValue x)
{
    return mul(j, dy, mish_slope(j, x));
}

static JitValue hardswish_grad(Jit *j, JitValue dy, JitValue x)
{
    JitValue slope = add(j, divide(j, x, jit_vf(j, 3)), jit_vf(j, 0.5));
    JitValue y = jit_vchoose(j, JIT_LT, x, jit_vf(j, 3), mul(j, dy, slope), dy);
    return jit_vchoose(j, JIT_LE, x, jit_vf(j, -3), vf(j, 0), y);
}

static JitValue clamp_grad(Jit *j, const PointInstr *p, const JitValue *in)
{
    JitValue y = in[0], x = in[1], zero = vf(j, 0);
    if (isfinite(p->a))
        y = jit_vchoose(j, p->flag ? JIT_GT : JIT_GE, x, jit_vf(j, p->a), y, zero);
    return isfinite(p->b) ? jit_vchoose(j, p->flag ? JIT_LT : JIT_LE, x, jit_vf(j, p->b), y, zero)
                          : y;
}

static JitValue tanh_grad(Jit *j, JitValue dy, JitValue y)
{
    JitValue one = jit_vf(j, 1);
    return mul(j, dy, sub(j, one, mul(j, y, y)));
}

static JitValue sigmoid_grad(Jit *j, JitValue dy, JitValue y)
{
    JitValue one = jit_vf(j, 1);
    return mul(j, dy, mul(j, y, sub(j, one, y)));
}

static JitValue gelu_grad(Jit *j, const PointInstr *p, const JitValue *in)
{
    return mul(j, in[0], gelu_slope(j, p, in[1]));
}

static JitValue silu_grad(Jit *j, JitValue dy, JitValue x)
{
    return mul(j, dy, gate_slope(j, x, jit_vsigmoid(j, x), NULL));
}

/* --- the table --- */

const PointCode point_code_gelu = {.real = gelu};
const PointCode point_code_silu = {.unary = silu};
const PointCode point_code_leaky_relu = {.real = leaky_relu};
const PointCode point_code_elu = {.real = elu};
const PointCode point_code_softplus = {.real = softplus};
const PointCode point_code_mish = {.unary = mish};
const PointCode point_code_hardswish = {.unary = hardswish};
const PointCode point_code_clamp = {.real = clamp};
const PointCode point_code_relu_grad = {.real = relu_grad};
const PointCode point_code_relu_mask_grad = {.real = relu_mask_grad};
const PointCode point_code_tanh_grad = {.binary = tanh_grad};
const PointCode point_code_sigmoid_grad = {.binary = sigmoid_grad};
const PointCode point_code_gelu_grad = {.real = gelu_grad};
const PointCode point_code_silu_grad = {.binary = silu_grad};
const PointCode point_code_elu_grad = {.real = elu_grad};
const PointCode point_code_softplus_grad = {.real = softplus_grad};
const PointCode point_code_mish_grad = {.binary = mish_grad};
const PointCode point_code_hardswish_grad = {.binary = hardswish_grad};
const PointCode point_code_clamp_grad = {.real = clamp_grad};
