/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One element-wise operation on elements: the meaning of every POINT operation, as in
 * ir/eval_point.c, with the bits of codegen/cpu/point/point_ops.c. */
#include "codegen/cuda/point.h"
#include "codegen/cuda/text.h"

#include "ir/random.h"
#include "ir/support/bug.h"

#include <math.h>

/* Puts a pattern with its operands. */
static void put_pattern(StrBuf *out, const char *pattern, const PointInstr *i,
                        const char *const *in)
{
    for (const char *c = pattern; *c; c++) {
        if (*c != '$') {
            strbuf_printf(out, "%c", *c);
        } else if (*++c == 'a') {
            text_float(out, i->a);
        } else if (*c == 'b') {
            text_float(out, i->b);
        } else {
            strbuf_put(out, in[*c - '0']);
        }
    }
}

/* --- what a pattern cannot say --- */

static void write_cast(StrBuf *out, const PointInstr *i, const char *const *in)
{
    bool real = i->from == DTYPE_F32;
    const char *pattern = "$0";
    if (i->dtype == DTYPE_F32 && !real)
        pattern = "(float)$0";
    else if (i->dtype == DTYPE_I32 && real)
        pattern = "s_to_int($0)";
    else if (i->dtype == DTYPE_U8 && i->from != DTYPE_U8)
        pattern = real ? "s_clamp_u8(s_to_int($0))" : "s_clamp_u8($0)";
    else if (i->dtype == DTYPE_BOOL)
        pattern = "($0 != 0)";
    put_pattern(out, pattern, i, in);
}

static void write_softplus(StrBuf *out, const PointInstr *i, const char *const *in)
{
    put_pattern(out,
                i->a == 1 ? "s_softplus($0)" : "($0 * $a > 20.0f ? $0 : s_softplus($0 * $a) / $a)",
                i, in);
}

static void write_softplus_grad(StrBuf *out, const PointInstr *i, const char *const *in)
{
    put_pattern(out, i->a == 1 ? "$0 * -s_expm1_negative(-$1)" : "$0 * -s_expm1_negative(-$1 * $a)",
                i, in);
}

static void write_clamp(StrBuf *out, const PointInstr *i, const char *const *in)
{
    put_pattern(out,
                !isfinite(i->a)   ? "s_min($0, $b)"
                : !isfinite(i->b) ? "s_max($0, $a)"
                                  : "s_min(s_max($0, $a), $b)",
                i, in);
}

static void write_clamp_grad(StrBuf *out, const PointInstr *i, const char *const *in)
{
    strbuf_put(out, "(");
    if (isfinite(i->a))
        put_pattern(out, i->flag ? "$1 > $a" : "$1 >= $a", i, in);
    if (isfinite(i->a) && isfinite(i->b))
        strbuf_put(out, " && ");
    if (isfinite(i->b))
        put_pattern(out, i->flag ? "$1 < $b" : "$1 <= $b", i, in);
    put_pattern(out, " ? $0 : 0.0f)", i, in);
}

static void write_power(StrBuf *out, const PointInstr *i, const char *const *in)
{
    double e = i->a, size = fabs(e);
    if (!i->flag) {
        put_pattern(out, "s_pow($0, $1)", i, in);
        return;
    }
    if (e < 0)
        strbuf_put(out, "1.0f / (");
    if (e == 0)
        strbuf_put(out, "1.0f");
    else if (size < 1)
        put_pattern(out, "sqrtf($0)", i, in);
    else
        strbuf_printf(out,
                      size == floor(size) ? "s_whole_power(%s, %d)"
                                          : "s_whole_power(%s, %d) * sqrtf(%s)",
                      in[0], (int)size, in[0]);
    if (e < 0)
        strbuf_put(out, ")");
}

static void write_dropout(StrBuf *out, const PointInstr *i, const char *const *in)
{
    put_pattern(out, "s_dropout($0, $1, $2, $3, $4, $5, $6, ", i, in);
    strbuf_printf(out, "%uu, ", (unsigned)dropout_threshold(i->a));
    text_float(out, 1 / (1 - i->a));
    strbuf_put(out, ")");
}

static void write_random(StrBuf *out, const PointInstr *i, const char *const *in)
{
    static const char *const function[RANDOM_KINDS] = {"s_uniform", "s_normal", "s_integer"};
    strbuf_printf(out, "%s(", function[i->k]);
    put_pattern(out, "s_philox($4, $5, $2, $3, $0, $1)", i, in);
    if (i->k == RANDOM_INTEGERS)
        strbuf_printf(out, ", %uu", (unsigned)i->a);
    strbuf_put(out, ")");
}

/* Results of u8 are clamped. */
static void write_narrow(StrBuf *out, const PointInstr *i, const char *const *in, const char *real,
                         const char *integer)
{
    if (i->from == DTYPE_F32) {
        put_pattern(out, real, i, in);
        return;
    }
    strbuf_put(out, i->dtype == DTYPE_U8 ? "s_clamp_u8(" : "(");
    put_pattern(out, integer, i, in);
    strbuf_put(out, ")");
}

static void write_add(StrBuf *out, const PointInstr *i, const char *const *in)
{
    write_narrow(out, i, in, "$0 + $1", "(int)((u32)$0 + (u32)$1)");
}

static void write_sub(StrBuf *out, const PointInstr *i, const char *const *in)
{
    write_narrow(out, i, in, "$0 - $1", "(int)((u32)$0 - (u32)$1)");
}

static void write_mul(StrBuf *out, const PointInstr *i, const char *const *in)
{
    write_narrow(out, i, in, "$0 * $1", "(int)((u32)$0 * (u32)$1)");
}

/* --- the table --- */

const CudaPoint cuda_point_neg = {.real = "-$0", .integer = "(int)(0u - (u32)$0)"};
const CudaPoint cuda_point_abs = {.real = "s_abs($0)",
                                  .integer = "($0 > 0 ? $0 : (int)(0u - (u32)$0))"};
const CudaPoint cuda_point_sign = {.real = "s_sign($0)", .integer = "(($0 > 0) - ($0 < 0))"};
const CudaPoint cuda_point_exp = {.real = "s_exp($0)"};
const CudaPoint cuda_point_log = {.real = "s_log($0)"};
const CudaPoint cuda_point_sqrt = {.real = "sqrtf($0)"};
const CudaPoint cuda_point_rsqrt = {.real = "s_rsqrt($0)"};
const CudaPoint cuda_point_sin = {.real = "s_sin($0)"};
const CudaPoint cuda_point_cos = {.real = "s_cos($0)"};
const CudaPoint cuda_point_tanh = {.real = "s_tanh($0)"};
const CudaPoint cuda_point_sigmoid = {.real = "s_sigmoid($0)"};
const CudaPoint cuda_point_relu = {.real = "s_relu($0)", .integer = "($0 > 0 ? $0 : 0)"};
const CudaPoint cuda_point_gelu = {.real = "s_gelu($0)", .flagged = "s_gelu_tanh($0)"};
const CudaPoint cuda_point_silu = {.real = "s_silu($0)"};
const CudaPoint cuda_point_erf = {.real = "s_erf($0)"};
const CudaPoint cuda_point_leaky_relu = {.real = "($0 > 0.0f ? $0 : $0 * $a)"};
const CudaPoint cuda_point_elu = {.real = "($0 > 0.0f ? $0 : s_expm1_negative($0) * $a)"};
const CudaPoint cuda_point_softplus = {.write = write_softplus};
const CudaPoint cuda_point_mish = {.real = "s_mish($0)"};
const CudaPoint cuda_point_hardswish = {.real = "s_hardswish($0)"};
const CudaPoint cuda_point_clamp = {.write = write_clamp};
const CudaPoint cuda_point_cast = {.write = write_cast};
const CudaPoint cuda_point_add = {.write = write_add};
const CudaPoint cuda_point_sub = {.write = write_sub};
const CudaPoint cuda_point_mul = {.write = write_mul};
const CudaPoint cuda_point_div = {.real = "$0 / $1"};
const CudaPoint cuda_point_pow = {.write = write_power};
const CudaPoint cuda_point_maximum = {.real = "s_max($0, $1)", .integer = "($0 > $1 ? $0 : $1)"};
const CudaPoint cuda_point_minimum = {.real = "s_min($0, $1)", .integer = "($0 < $1 ? $0 : $1)"};
const CudaPoint cuda_point_eq = {.real = "($0 == $1)", .integer = "($0 == $1)"};
const CudaPoint cuda_point_ne = {.real = "($0 != $1)", .integer = "($0 != $1)"};
const CudaPoint cuda_point_lt = {.real = "($0 < $1)", .integer = "($0 < $1)"};
const CudaPoint cuda_point_le = {.real = "($0 <= $1)", .integer = "($0 <= $1)"};
const CudaPoint cuda_point_gt = {.real = "($0 > $1)", .integer = "($0 > $1)"};
const CudaPoint cuda_point_ge = {.real = "($0 >= $1)", .integer = "($0 >= $1)"};
const CudaPoint cuda_point_select = {.integer = "($0 ? $1 : $2)"};
const CudaPoint cuda_point_relu_grad = {.real = "($1 > 0.0f ? $0 : 0.0f)",
                                        .flagged = "($1 > 0.0f ? $0 : $0 * $a)"};
const CudaPoint cuda_point_relu_mask_grad = {.real = "($1 ? $0 : 0.0f)",
                                             .flagged = "($1 ? $0 : $0 * $a)"};
const CudaPoint cuda_point_tanh_grad = {.real = "$0 * (1.0f - $1 * $1)"};
const CudaPoint cuda_point_sigmoid_grad = {.real = "$0 * ($1 * (1.0f - $1))"};
const CudaPoint cuda_point_gelu_grad = {.real = "$0 * s_gelu_slope($1)",
                                        .flagged = "$0 * s_gelu_tanh_slope($1)"};
const CudaPoint cuda_point_silu_grad = {.real = "$0 * s_silu_slope($1)"};
const CudaPoint cuda_point_elu_grad = {.real = "($1 <= 0.0f ? $0 * ($1 + $a) : $0)"};
const CudaPoint cuda_point_softplus_grad = {.write = write_softplus_grad};
const CudaPoint cuda_point_mish_grad = {.real = "$0 * s_mish_slope($1)"};
const CudaPoint cuda_point_hardswish_grad = {.real = "s_hardswish_grad($0, $1)"};
const CudaPoint cuda_point_clamp_grad = {.write = write_clamp_grad};
const CudaPoint cuda_point_causal_mask = {.real = "($2 > $1 ? $a : $0)"};
const CudaPoint cuda_point_dropout = {.write = write_dropout};
const CudaPoint cuda_point_random = {.write = write_random};
/* Programs hold what they consist of instead (codegen/forms/point_nodes.c). */
const CudaPoint cuda_point_bn_apply = {0};
const CudaPoint cuda_point_bn_grad_x = {0};

const CudaPoint *const cuda_points[OP_COUNT] = {
#define EACH_POINT(name) [OP_##name] = &cuda_point_##name,
#include "ir/ops_by_class.h"
};

static void put_constant(StrBuf *out, const PointInstr *i)
{
    if (i->dtype == DTYPE_F32)
        text_float(out, i->a);
    else
        strbuf_printf(out, "%d", i->dtype == DTYPE_BOOL ? i->a != 0 : (int)i->a);
}

/* Instructions that are no operations. */
static bool put_special(StrBuf *out, const PointInstr *i, const char *const *in)
{
    if (i->op == OP_const)
        put_constant(out, i);
    else if (i->op == POINT_RNG_KEY_LOW)
        put_pattern(out, "(int)((u32)$0 + (u32)$2)", i, in);
    else if (i->op == POINT_RNG_KEY_HIGH)
        put_pattern(out, "s_key_high($0, $1, $2, $3)", i, in);
    else if (i->op == POINT_ROUND)
        put_pattern(out, "round_bf16($0)", i, in);
    else if (i->op == POINT_ONE_MINUS_POWER)
        strbuf_printf(out, "s_one_minus_power(%a, %s(%s))", i->a,
                      i->from == DTYPE_F32 ? "s_to_int" : "", in[0]);
    else
        return false;
    return true;
}

void cuda_point_expression(StrBuf *out, const PointInstr *i, const char *const *in)
{
    if (put_special(out, i, in))
        return;
    const CudaPoint *code = i->op < OP_COUNT ? cuda_points[i->op] : NULL;
    const char *pattern = !code                      ? NULL
                          : i->from != DTYPE_F32     ? code->integer
                          : i->flag && code->flagged ? code->flagged
                                                     : code->real;
    if (code && code->write)
        code->write(out, i, in);
    else if (pattern)
        put_pattern(out, pattern, i, in);
    else
        BUG("no CUDA code for instruction %d of %s", i->op, dtype_name(i->from));
}
