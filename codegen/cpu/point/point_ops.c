/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One element-wise operation on vectors: the meaning of every POINT operation, as in
 * ir/eval_point.c. */
#include "codegen/cpu/point/point_jit.h"
#include "codegen/jit/jit_short.h"

#include "ir/support/bug.h"

#include <math.h>
#include <string.h>

static bool real(const PointInstr *p)
{
    return p->from == DTYPE_F32;
}

/* --- conversions --- */

static JitValue bool_to_int(Jit *j, JitValue mask)
{
    return neg(j, mask);
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

static JitValue cast(Jit *j, const PointInstr *p, const JitValue *in)
{
    JitValue a = in[0];
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

static JitValue int_neg(Jit *j, const PointInstr *p, const JitValue *in)
{
    (void)p;
    return sub(j, jit_vi(j, 0), in[0]);
}

static JitValue int_abs(Jit *j, const PointInstr *p, const JitValue *in)
{
    return int_extreme(j, JIT_GT, in[0], int_neg(j, p, in));
}

static JitValue int_relu(Jit *j, const PointInstr *p, const JitValue *in)
{
    (void)p;
    return int_extreme(j, JIT_GT, in[0], jit_vi(j, 0));
}

static JitValue int_sign(Jit *j, const PointInstr *p, const JitValue *in)
{
    (void)p;
    JitValue a = in[0], zero = jit_vi(j, 0);
    return sub(j, jit_vmask(j, JIT_LT, a, zero), jit_vmask(j, JIT_GT, a, zero));
}

static JitValue narrowed(Jit *j, const PointInstr *p, JitValue r)
{
    return p->dtype == DTYPE_U8 ? clamp_u8(j, r) : r;
}

static JitValue int_add(Jit *j, const PointInstr *p, const JitValue *in)
{
    return narrowed(j, p, add(j, in[0], in[1]));
}

static JitValue int_sub(Jit *j, const PointInstr *p, const JitValue *in)
{
    return narrowed(j, p, sub(j, in[0], in[1]));
}

static JitValue both(Jit *j, const JitValue *in)
{
    return jit_tmp(j, jit_and(j, in[0], in[1]));
}

static JitValue int_mul(Jit *j, const PointInstr *p, const JitValue *in)
{
    return p->from == DTYPE_BOOL ? both(j, in) : narrowed(j, p, mul(j, in[0], in[1]));
}

static JitValue int_maximum(Jit *j, const PointInstr *p, const JitValue *in)
{
    return p->from == DTYPE_BOOL ? jit_tmp(j, jit_or(j, in[0], in[1]))
                                 : int_extreme(j, JIT_GT, in[0], in[1]);
}

static JitValue int_minimum(Jit *j, const PointInstr *p, const JitValue *in)
{
    return p->from == DTYPE_BOOL ? both(j, in) : int_extreme(j, JIT_LT, in[0], in[1]);
}

/* --- comparison --- */

static JitValue compare(Jit *j, const PointInstr *p, JitCompare op, const JitValue *in)
{
    JitValue a = in[0], b = in[1];
    if (p->from == DTYPE_BOOL) {
        a = bool_to_int(j, a);
        b = bool_to_int(j, b);
    }
    return jit_vmask(j, op, a, b);
}

#define COMPARISON(name, op)                                                                       \
    static JitValue compare_##name(Jit *j, const PointInstr *p, const JitValue *in)                \
    {                                                                                              \
        return compare(j, p, op, in);                                                              \
    }
COMPARISON(eq, JIT_EQ)
COMPARISON(ne, JIT_NE)
COMPARISON(lt, JIT_LT)
COMPARISON(le, JIT_LE)
COMPARISON(gt, JIT_GT)
COMPARISON(ge, JIT_GE)

static JitValue select_lanes(Jit *j, const PointInstr *p, const JitValue *in)
{
    (void)p;
    return jit_vselect(j, in[0], in[1], in[2]);
}

/* (x, row, column) */
static JitValue causal_mask(Jit *j, const PointInstr *p, const JitValue *in)
{
    return jit_vselect(j, jit_vmask(j, JIT_GT, in[2], in[1]), vf(j, p->a), in[0]);
}

/* --- numbers --- */

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
    return splat(j, jit_cast(j, r, t->f32));
}

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
    if (dtype_is_real(dtype))
        word = jit_bitcast(j, word, jit_types(j)->f32);
    return splat(j, jit_tmp(j, word));
}

/* --- the table --- */

const PointCode point_code_neg = {.unary = neg, .integer = int_neg};
const PointCode point_code_abs = {.unary = jit_vabs, .integer = int_abs};
const PointCode point_code_sign = {.unary = sign, .integer = int_sign};
const PointCode point_code_exp = {.unary = jit_vexp};
const PointCode point_code_log = {.unary = jit_vlog};
const PointCode point_code_sqrt = {.unary = jit_vsqrt};
const PointCode point_code_rsqrt = {.unary = rsqrt};
const PointCode point_code_sin = {.unary = jit_vsin};
const PointCode point_code_cos = {.unary = jit_vcos};
const PointCode point_code_tanh = {.unary = jit_vtanh};
const PointCode point_code_sigmoid = {.unary = jit_vsigmoid};
const PointCode point_code_relu = {.unary = jit_vrelu, .integer = int_relu};
const PointCode point_code_erf = {.unary = jit_verf};
const PointCode point_code_cast = {.real = cast, .integer = cast};
const PointCode point_code_add = {.binary = add, .integer = int_add};
const PointCode point_code_sub = {.binary = sub, .integer = int_sub};
const PointCode point_code_mul = {.binary = mul, .integer = int_mul};
const PointCode point_code_div = {.binary = divide};
const PointCode point_code_pow = {.real = power};
const PointCode point_code_maximum = {.binary = jit_vmax, .integer = int_maximum};
const PointCode point_code_minimum = {.binary = jit_vmin, .integer = int_minimum};
const PointCode point_code_eq = {.real = compare_eq, .integer = compare_eq};
const PointCode point_code_ne = {.real = compare_ne, .integer = compare_ne};
const PointCode point_code_lt = {.real = compare_lt, .integer = compare_lt};
const PointCode point_code_le = {.real = compare_le, .integer = compare_le};
const PointCode point_code_gt = {.real = compare_gt, .integer = compare_gt};
const PointCode point_code_ge = {.real = compare_ge, .integer = compare_ge};
const PointCode point_code_select = {.integer = select_lanes};
const PointCode point_code_causal_mask = {.real = causal_mask};
/* Programs hold what they consist of instead (codegen/forms/point_nodes.c). */
const PointCode point_code_bn_apply = {0};
const PointCode point_code_bn_grad_x = {0};

const PointCode *const point_codes[OP_COUNT] = {
#define EACH_POINT(name) [OP_##name] = &point_code_##name,
#include "ir/ops_by_class.h"
};

bool point_is_byte(DType dtype)
{
    return dtype == DTYPE_U8 || dtype == DTYPE_BOOL;
}

JitValue point_load_bytes(Jit *j, JitValue pointer, JitValue at, DType dtype)
{
    JitValue v = jit_vload_bytes(j, pointer, at);
    return dtype == DTYPE_BOOL ? jit_tmp(j, jit_neg(j, v)) : v;
}

JitValue point_apply(Jit *j, const PointInstr *p, const JitValue *in)
{
    if (p->op == OP_const)
        return constant(j, p);
    if (p->op == POINT_RNG_KEY_LOW || p->op == POINT_RNG_KEY_HIGH)
        return point_rng_key(j, p, in);
    if (p->op == POINT_ROUND)
        return jit_vround_bf16(j, in[0]);
    if (p->op == POINT_ONE_MINUS_POWER)
        return one_minus_power(j, p, in[0]);
    const PointCode *code = p->op < OP_COUNT ? point_codes[p->op] : NULL;
    if (code && real(p) && code->unary)
        return code->unary(j, in[0]);
    if (code && real(p) && code->binary)
        return code->binary(j, in[0], in[1]);
    PointFn *apply = !code ? NULL : real(p) ? code->real : code->integer;
    if (!apply)
        BUG("no code for instruction %d of %s", p->op, dtype_name(p->from));
    return apply(j, p, in);
}
