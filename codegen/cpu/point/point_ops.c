/* One element-wise operation on vectors: the meaning of every POINT operation, as in
 * ir/eval_point.c. */
#include "codegen/cpu/point/pointwise_internal.h"

#include "ir/support/bug.h"

#include <math.h>
#include <string.h>

#define SQRT_2_OVER_PI 0.79788456080286535588
#define GELU_CUBIC     0.044715 /* Hendrycks and Gimpel 2016, tanh form */

static JitValue vf(Jit *j, double v)
{
    return jit_tmp(j, jit_vf(j, v));
}

static JitValue add(Jit *j, JitValue a, JitValue b)
{
    return jit_tmp(j, jit_add(j, a, b));
}

static JitValue sub(Jit *j, JitValue a, JitValue b)
{
    return jit_tmp(j, jit_sub(j, a, b));
}

static JitValue mul(Jit *j, JitValue a, JitValue b)
{
    return jit_tmp(j, jit_mul(j, a, b));
}

static JitValue divide(Jit *j, JitValue a, JitValue b)
{
    return jit_tmp(j, jit_div(j, a, b));
}

static bool real(const PointInstr *p)
{
    return p->from == DTYPE_F32;
}

/* --- conversions --- */

static JitValue bool_to_int(Jit *j, JitValue mask)
{
    return jit_tmp(j, jit_neg(j, mask));
}

static JitValue clamp_u8(Jit *j, JitValue v)
{
    JitValue zero = jit_vi(j, 0), top = jit_vi(j, 255);
    v = jit_vselect(j, jit_vmask(j, JIT_GT, v, zero), v, zero);
    return jit_vselect(j, jit_vmask(j, JIT_LT, v, top), v, top);
}

static JitValue to_int(Jit *j, DType from, JitValue a)
{
    return from == DTYPE_F32 ? jit_vf_to_vi(j, a) : from == DTYPE_BOOL ? bool_to_int(j, a) : a;
}

static JitValue cast(Jit *j, const PointInstr *p, JitValue a)
{
    if (p->dtype == p->from)
        return a;
    switch (p->dtype) {
    case DTYPE_F32:
        return jit_vi_to_vf(j, to_int(j, p->from, a));
    case DTYPE_I32:
        return to_int(j, p->from, a);
    case DTYPE_U8:
        return clamp_u8(j, to_int(j, p->from, a));
    case DTYPE_BOOL:
        return jit_vmask(j, JIT_NE, a, real(p) ? jit_vf(j, 0) : jit_vi(j, 0));
    case DTYPE_I64:
    case DTYPE_F16:
    case DTYPE_BF16:
    case DTYPE_COUNT:
        break;
    }
    BUG("no code for a cast from %s to %s", dtype_name(p->from), dtype_name(p->dtype));
}

/* --- functions --- */

static JitValue rsqrt(Jit *j, JitValue a)
{
    return divide(j, vf(j, 1), jit_vsqrt(j, a));
}

static JitValue sign(Jit *j, JitValue a)
{
    JitValue zero = jit_vf(j, 0);
    JitValue r = jit_vchoose(j, JIT_LT, a, zero, jit_vf(j, -1), a);
    return jit_vchoose(j, JIT_GT, a, zero, jit_vf(j, 1), r);
}

/* The tanh form is x * sigmoid(2 z): no cancellation on the left. */
static JitValue gelu_gate(Jit *j, JitValue x, JitValue *square)
{
    *square = mul(j, x, x);
    JitValue inner = jit_vfma(j, *square, jit_vf(j, GELU_CUBIC), jit_vf(j, 1));
    return jit_vsigmoid(j, mul(j, mul(j, x, inner), jit_vf(j, 2 * SQRT_2_OVER_PI)));
}

static JitValue gelu(Jit *j, const PointInstr *p, JitValue x)
{
    JitValue square;
    return mul(j, x, p->flag ? gelu_gate(j, x, &square) : jit_vnormal_cdf(j, x, NULL));
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

/* a^k for a small whole k > 0 */
static JitValue whole_power(Jit *j, JitValue a, int k)
{
    JitValue result = NULL;
    for (JitValue square = a; k; k >>= 1) {
        if (k & 1)
            result = result ? mul(j, result, square) : square;
        if (k > 1)
            square = mul(j, square, square);
    }
    return result;
}

/* Exponents in use have exact forms; the rest goes through exp and log. */
bool point_has_power(double e)
{
    double size = fabs(e);
    return size <= 64 && size * 2 == floor(size * 2);
}

static JitValue power(Jit *j, const PointInstr *p, const JitValue *in)
{
    double e = p->a, size = fabs(e);
    if (!p->flag)
        return jit_vpow(j, in[0], in[1]);
    if (e == 0)
        return vf(j, 1);
    JitValue r = size >= 1 ? whole_power(j, in[0], (int)size) : NULL;
    if (size != floor(size))
        r = r ? mul(j, r, jit_vsqrt(j, in[0])) : jit_vsqrt(j, in[0]);
    return e > 0 ? r : divide(j, vf(j, 1), r);
}

/* --- integers and bools --- */

static JitValue int_extreme(Jit *j, JitCompare op, JitValue a, JitValue b)
{
    return jit_vselect(j, jit_vmask(j, op, a, b), a, b);
}

static JitValue int_unary(Jit *j, OpKind op, JitValue a)
{
    JitValue zero = jit_vi(j, 0);
    JitValue minus = jit_tmp(j, jit_sub(j, zero, a));
    if (op == OP_neg)
        return minus;
    if (op == OP_abs)
        return int_extreme(j, JIT_GT, a, minus);
    if (op == OP_relu)
        return int_extreme(j, JIT_GT, a, zero);
    if (op == OP_sign)
        return sub(j, jit_vmask(j, JIT_LT, a, zero), jit_vmask(j, JIT_GT, a, zero));
    BUG("no integer code for %s", op_name(op));
}

static JitValue int_binary(Jit *j, const PointInstr *p, JitValue a, JitValue b)
{
    OpKind op = (OpKind)p->op;
    if (p->from == DTYPE_BOOL)
        return jit_tmp(j, op == OP_maximum ? jit_or(j, a, b) : jit_and(j, a, b));
    if (op == OP_maximum || op == OP_minimum)
        return int_extreme(j, op == OP_maximum ? JIT_GT : JIT_LT, a, b);
    JitValue r = op == OP_add ? add(j, a, b) : op == OP_sub ? sub(j, a, b) : mul(j, a, b);
    return p->dtype == DTYPE_U8 ? clamp_u8(j, r) : r;
}

/* --- comparison --- */

static JitCompare compare_of(OpKind op)
{
    switch ((int)op) {
    case OP_eq:
        return JIT_EQ;
    case OP_ne:
        return JIT_NE;
    case OP_lt:
        return JIT_LT;
    case OP_le:
        return JIT_LE;
    case OP_gt:
        return JIT_GT;
    default:
        return JIT_GE;
    }
}

static JitValue compare(Jit *j, const PointInstr *p, JitValue a, JitValue b)
{
    if (p->from == DTYPE_BOOL) {
        a = bool_to_int(j, a);
        b = bool_to_int(j, b);
    }
    return jit_vmask(j, compare_of((OpKind)p->op), a, b);
}

/* --- random bits: Philox4x32-10 (Salmon et al. 2011), used as in ir/rng.c --- */

static JitValue vu(Jit *j, uint32_t v)
{
    return jit_tmp(j, jit_bitcast(j, jit_tmp(j, jit_vi(j, (int32_t)v)), jit_types(j)->vu));
}

static JitValue unsign(Jit *j, JitValue v)
{
    return jit_tmp(j, jit_bitcast(j, v, jit_types(j)->vu));
}

static JitValue xor3(Jit *j, JitValue a, JitValue b, JitValue c)
{
    return jit_tmp(j, jit_xor(j, jit_xor(j, a, b), c));
}

/* First output word for counter c[0..4) and key (k0, k1), lane by lane. */
static JitValue philox(Jit *j, const JitValue *counter, JitValue k0, JitValue k1)
{
    JitValue c[4], m0 = vu(j, 0xD2511F53u), m1 = vu(j, 0xCD9E8D57u);
    memcpy(c, counter, sizeof c);
    for (int round = 0; round < 10; round++) {
        JitValue a_high, a_low, b_high, b_low;
        jit_vmul_wide(j, c[0], m0, &a_high, &a_low);
        jit_vmul_wide(j, c[2], m1, &b_high, &b_low);
        c[0] = xor3(j, b_high, c[1], k0);
        c[1] = b_low;
        c[2] = xor3(j, a_high, c[3], k1);
        c[3] = a_low;
        k0 = add(j, k0, vu(j, 0x9E3779B9u));
        k1 = add(j, k1, vu(j, 0xBB67AE85u));
    }
    return c[0];
}

/* (x, key low, key high, step low, step high, index low, index high): keeps x / (1 - p) where the
 * bits are at least p * 2^32.  Bits are compared with the threshold rounded up, as signed numbers
 * after flipping the top bit. */
static JitValue dropout(Jit *j, const PointInstr *p, const JitValue *in)
{
    JitValue counter[4] = {unsign(j, in[5]), unsign(j, in[6]), unsign(j, in[3]), unsign(j, in[4])};
    JitValue bits = philox(j, counter, unsign(j, in[1]), unsign(j, in[2]));
    uint32_t threshold = (uint32_t)ceil(p->a * 0x1p32), top = 0x80000000u;
    JitValue flipped =
        jit_tmp(j, jit_bitcast(j, jit_tmp(j, jit_xor(j, bits, vu(j, top))), jit_types(j)->vi));
    JitValue keep = jit_vmask(j, JIT_GE, flipped, jit_vi(j, (int32_t)(threshold ^ top)));
    return jit_vselect(j, keep, mul(j, in[0], jit_vf(j, 1 / (1 - p->a))), vf(j, 0));
}

/* Words of seed + k * odd constant; the carry is an unsigned comparison of the low words. */
static JitValue rng_key(Jit *j, const PointInstr *p, const JitValue *in)
{
    JitValue low = add(j, in[0], in[2]);
    if (p->op == POINT_RNG_KEY_LOW)
        return low;
    JitValue top = jit_vi(j, INT32_MIN);
    JitValue carry =
        jit_vmask(j, JIT_LT, jit_tmp(j, jit_xor(j, low, top)), jit_tmp(j, jit_xor(j, in[0], top)));
    return sub(j, add(j, in[1], in[3]), carry);
}

static JitValue f64(Jit *j, double v)
{
    int64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return jit_bitcast(j, jit_i64(j, bits), jit_types(j)->f64);
}

/* 1 - a^n by squaring in double: the corrections of Adam lose all digits in float. */
static JitValue one_minus_power(Jit *j, const PointInstr *p, JitValue step)
{
    const JitTypes *t = jit_types(j);
    JitValue n0 = p->from == DTYPE_F32 ? jit_vf_to_vi(j, step) : step;
    JitVar n = jit_var(j, t->i64, "n"), power = jit_var(j, t->f64, "power");
    JitVar square = jit_var(j, t->f64, "square");
    jit_set(j, n, jit_cast(j, jit_lane(j, n0, 0), t->i64));
    jit_set(j, power, f64(j, 1));
    jit_set(j, square, f64(j, p->a));
    JitLoop bits = jit_for(j, jit_i64(j, 0), jit_i64(j, 31), 1, "bit");
    JitValue bit = jit_and(j, jit_shr(j, jit_get(n), jit_index(&bits)), jit_i64(j, 1));
    JitIf set = jit_if(j, jit_compare(j, JIT_NE, bit, jit_i64(j, 0)));
    jit_set(j, power, jit_mul(j, jit_get(power), jit_get(square)));
    jit_end_if(j, &set);
    jit_set(j, square, jit_mul(j, jit_get(square), jit_get(square)));
    jit_end_for(j, &bits);
    JitValue r = jit_sub(j, f64(j, 1), jit_get(power));
    return jit_tmp(j, jit_splat(j, jit_cast(j, r, t->f32)));
}

/* --- the table --- */

static JitValue constant(Jit *j, const PointInstr *p)
{
    if (p->dtype == DTYPE_F32)
        return vf(j, p->a);
    if (p->dtype == DTYPE_BOOL)
        return jit_tmp(j, jit_vi(j, p->a != 0 ? -1 : 0));
    return jit_tmp(j, jit_vi(j, (int32_t)p->a));
}

JitValue point_number_lanes(Jit *j, DType dtype, int i)
{
    JitValue word = jit_cast(j, jit_number(j, i), jit_types(j)->i32);
    if (dtype == DTYPE_F32)
        word = jit_bitcast(j, word, jit_types(j)->f32);
    return jit_tmp(j, jit_splat(j, jit_tmp(j, word)));
}

static JitValue float_unary(Jit *j, const PointInstr *p, JitValue a)
{
    switch (p->op) {
    case OP_neg:
        return jit_tmp(j, jit_neg(j, a));
    case OP_abs:
        return jit_vabs(j, a);
    case OP_sign:
        return sign(j, a);
    case OP_exp:
        return jit_vexp(j, a);
    case OP_log:
        return jit_vlog(j, a);
    case OP_sin:
        return jit_vsin(j, a);
    case OP_cos:
        return jit_vcos(j, a);
    case OP_sqrt:
        return jit_vsqrt(j, a);
    case OP_rsqrt:
        return rsqrt(j, a);
    case OP_tanh:
        return jit_vtanh(j, a);
    case OP_sigmoid:
        return jit_vsigmoid(j, a);
    case OP_relu:
        return jit_vrelu(j, a);
    case OP_gelu:
        return gelu(j, p, a);
    case OP_silu:
        return mul(j, a, jit_vsigmoid(j, a));
    default:
        BUG("no code for %s", op_name((OpKind)p->op));
    }
}

/* in[0] is the gradient, in[1] what the forward saved. */
static JitValue activation_grad(Jit *j, const PointInstr *p, JitValue dy, JitValue s)
{
    JitValue one = jit_vf(j, 1);
    switch (p->op) {
    case OP_relu_grad:
        return jit_vchoose(j, JIT_GT, s, jit_vf(j, 0), dy, vf(j, 0));
    case OP_tanh_grad:
        return mul(j, dy, sub(j, one, mul(j, s, s)));
    case OP_sigmoid_grad:
        return mul(j, dy, mul(j, s, sub(j, one, s)));
    case OP_gelu_grad:
        return mul(j, dy, gelu_slope(j, p, s));
    case OP_silu_grad:
        return mul(j, dy, gate_slope(j, s, jit_vsigmoid(j, s), NULL));
    default:
        BUG("no code for %s", op_name((OpKind)p->op));
    }
}

static JitValue float_binary(Jit *j, const PointInstr *p, const JitValue *in)
{
    switch (p->op) {
    case OP_add:
        return add(j, in[0], in[1]);
    case OP_sub:
        return sub(j, in[0], in[1]);
    case OP_mul:
        return mul(j, in[0], in[1]);
    case OP_div:
        return divide(j, in[0], in[1]);
    case OP_pow:
        return power(j, p, in);
    case OP_maximum:
        return jit_vmax(j, in[0], in[1]);
    case OP_minimum:
        return jit_vmin(j, in[0], in[1]);
    default:
        return activation_grad(j, p, in[0], in[1]);
    }
}

JitValue point_apply(Jit *j, const PointInstr *p, const JitValue *in)
{
    switch (p->op) {
    case OP_const:
        return constant(j, p);
    case OP_cast:
        return cast(j, p, in[0]);
    case OP_stop_gradient:
        return in[0];
    case OP_eq:
    case OP_ne:
    case OP_lt:
    case OP_le:
    case OP_gt:
    case OP_ge:
        return compare(j, p, in[0], in[1]);
    case OP_select:
        return jit_vselect(j, in[0], in[1], in[2]);
    case OP_relu_mask_grad:
        return jit_vselect(j, in[1], in[0], vf(j, 0));
    case OP_dropout:
        return dropout(j, p, in);
    case OP_causal_mask: /* (x, row, column) */
        return jit_vselect(j, jit_vmask(j, JIT_GT, in[2], in[1]), vf(j, p->a), in[0]);
    case POINT_RNG_KEY_LOW:
    case POINT_RNG_KEY_HIGH:
        return rng_key(j, p, in);
    case POINT_ONE_MINUS_POWER:
        return one_minus_power(j, p, in[0]);
    default:
        break;
    }
    if (p->n_in == 1)
        return real(p) ? float_unary(j, p, in[0]) : int_unary(j, (OpKind)p->op, in[0]);
    return real(p) ? float_binary(j, p, in) : int_binary(j, p, in[0], in[1]);
}
