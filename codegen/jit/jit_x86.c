/* SPDX-License-Identifier: GPL-3.0-or-later */
/* All x86 knowledge of the emitter: AVX-512 at 16 lanes, AVX2 at 8, SSE2 at 4.  Operands are in
 * vector registers ("v"); SSE instructions overwrite their first source, hence the matching
 * constraint "0". */
#include "codegen/jit/jit_x86.h"

#include "ir/support/bug.h"

#include <stdio.h>

static bool sse(const Jit *j)
{
    return jit_lanes(j) == 4;
}

static bool avx512(const Jit *j)
{
    return jit_lanes(j) == 16;
}

static JitValue asm1(Jit *j, const char *text, JitType result, JitValue a)
{
    static const char *const in[] = {"v"};
    return jit_asm(j, text, result, "=v", 1, &a, in);
}

static JitValue asm2(Jit *j, const char *text, JitType result, JitValue a, JitValue b)
{
    static const char *const in[] = {"v", "v"};
    const JitValue v[] = {a, b};
    return jit_asm(j, text, result, "=v", 2, v, in);
}

/* a op b by an instruction that exists in both encodings. */
static JitValue binary(Jit *j, const char *op, JitType result, JitValue a, JitValue b)
{
    static const char *const in[] = {"0", "v"};
    const JitValue v[] = {a, b};
    char text[64];
    if (sse(j)) {
        snprintf(text, sizeof text, "%s %%2, %%0", op);
        return jit_asm(j, text, result, "=v", 2, v, in);
    }
    snprintf(text, sizeof text, "v%s %%2, %%1, %%0", op);
    return asm2(j, text, result, a, b);
}

static JitValue unary(Jit *j, const char *op, JitType result, JitValue a)
{
    char text[64];
    snprintf(text, sizeof text, "%s%s %%1, %%0", sse(j) ? "" : "v", op);
    return asm1(j, text, result, a);
}

JitValue x86_max(Jit *j, JitValue a, JitValue b)
{
    return binary(j, "maxps", jit_types(j)->vf, a, b);
}

JitValue x86_min(Jit *j, JitValue a, JitValue b)
{
    return binary(j, "minps", jit_types(j)->vf, a, b);
}

JitValue x86_sqrt(Jit *j, JitValue a)
{
    return unary(j, "sqrtps", jit_types(j)->vf, a);
}

static JitValue fma_as(Jit *j, const char *text, JitValue a, JitValue b, JitValue c)
{
    static const char *const in[] = {"v", "v", "0"};
    const JitValue v[] = {a, b, c};
    return jit_asm(j, text, jit_types(j)->vf, "=v", 3, v, in);
}

JitValue x86_fma(Jit *j, JitValue a, JitValue b, JitValue c)
{
    return fma_as(j, "vfmadd231ps %2, %1, %0", a, b, c);
}

JitValue x86_fnma(Jit *j, JitValue a, JitValue b, JitValue c)
{
    return fma_as(j, "vfnmadd231ps %2, %1, %0", a, b, c);
}

/* The predicates of cmpps and vpcmpd that do not need swapped operands. */
static int predicate(JitCompare op)
{
    return op == JIT_EQ ? 0 : op == JIT_LT ? 1 : op == JIT_LE ? 2 : 4;
}

/* > and >= are < and <= the other way round, so that NaN makes them false. */
static void order_operands(JitCompare *op, JitValue *a, JitValue *b)
{
    if (*op != JIT_GT && *op != JIT_GE)
        return;
    JitValue t = *a;
    *a = *b;
    *b = t;
    *op = *op == JIT_GT ? JIT_LT : JIT_LE;
}

/* A comparison in a mask register of AVX-512. */
static JitValue k_mask(Jit *j, JitCompare op, JitValue a, JitValue b)
{
    static const char *const in[] = {"v", "v"};
    order_operands(&op, &a, &b);
    bool real = jit_type_of(a) == jit_types(j)->vf;
    const JitValue v[] = {a, b};
    char text[64];
    snprintf(text, sizeof text, "%s $%d, %%2, %%1, %%0", real ? "vcmpps" : "vpcmpd", predicate(op));
    return jit_asm(j, text, jit_types(j)->i32, "=Yk", 2, v, in);
}

static JitValue float_mask(Jit *j, JitCompare op, JitValue a, JitValue b)
{
    char name[16];
    order_operands(&op, &a, &b);
    snprintf(name, sizeof name, "cmpps $%d,", predicate(op));
    return binary(j, name, jit_types(j)->vi, a, b);
}

/* Only = and > exist. */
static JitValue int_mask(Jit *j, JitCompare op, JitValue a, JitValue b)
{
    JitType vi = jit_types(j)->vi;
    order_operands(&op, &a, &b);
    if (op == JIT_LT)
        return binary(j, "pcmpgtd", vi, b, a);
    if (op == JIT_LE)
        return jit_not(j, binary(j, "pcmpgtd", vi, a, b));
    JitValue same = binary(j, "pcmpeqd", vi, a, b);
    return op == JIT_EQ ? same : jit_not(j, same);
}

JitValue x86_mask(Jit *j, JitCompare op, JitValue a, JitValue b)
{
    static const char *const in[] = {"Yk"};
    if (avx512(j)) {
        JitValue k = k_mask(j, op, a, b);
        return jit_asm(j, "vpmovm2d %1, %0", jit_types(j)->vi, "=v", 1, &k, in);
    }
    bool real = jit_type_of(a) == jit_types(j)->vf;
    return real ? float_mask(j, op, a, b) : int_mask(j, op, a, b);
}

JitValue x86_mask_bits(Jit *j, JitValue mask)
{
    static const char *const in[] = {"v"};
    const char *text = avx512(j) ? "vpmovd2m %1, %0"
                       : sse(j)  ? "movmskps %1, %0"
                                 : "vmovmskps %1, %0";
    return jit_asm(j, text, jit_types(j)->i32, avx512(j) ? "=Yk" : "=r", 1, &mask, in);
}

static JitValue blend_bits(Jit *j, JitValue mask, JitValue yes, JitValue no)
{
    const JitTypes *t = jit_types(j);
    JitValue m = jit_tmp(j, mask);
    JitValue y = jit_and(j, m, jit_bitcast(j, yes, t->vi));
    JitValue n = jit_and(j, jit_not(j, m), jit_bitcast(j, no, t->vi));
    return jit_tmp(j, jit_bitcast(j, jit_tmp(j, jit_or(j, y, n)), t->vf));
}

JitValue x86_choose(Jit *j, JitCompare op, JitValue a, JitValue b, JitValue yes, JitValue no)
{
    static const char *const in[] = {"v", "v", "Yk"};
    if (!avx512(j))
        return blend_bits(j, float_mask(j, op, a, b), yes, no);
    const JitValue v[] = {no, yes, k_mask(j, op, a, b)};
    return jit_asm(j, "vblendmps %2, %1, %0%{%3%}", jit_types(j)->vf, "=v", 3, v, in);
}

JitValue x86_i32_to_f32(Jit *j, JitValue v)
{
    return unary(j, "cvtdq2ps", jit_types(j)->vf, v);
}

JitValue x86_f32_to_i32(Jit *j, JitValue v)
{
    return unary(j, "cvttps2dq", jit_types(j)->vi, v);
}

/* Upper half of a register folded onto the lower, then lanes 2-3 onto 0-1, then 1 onto 0. */
static JitValue fold_lanes(Jit *j, const char *op, JitValue v)
{
    JitType vf = jit_types(j)->vf;
    char text[192];
    if (avx512(j)) {
        snprintf(text, sizeof text, "vextractf64x4 $1, %%1, %%t0\n\tv%sps %%t0, %%t1, %%t0", op);
        v = jit_asm(j, text, vf, "=&v", 1, &v, (const char *const[]){"v"});
    }
    if (!sse(j)) {
        snprintf(text, sizeof text, "vextractf%s $1, %%t1, %%x0\n\tv%sps %%x0, %%x1, %%x0",
                 avx512(j) ? "32x4" : "128", op);
        v = jit_asm(j, text, vf, "=&v", 1, &v, (const char *const[]){"v"});
        snprintf(text, sizeof text, "vmovhlps %%x1, %%x1, %%x0\n\tv%sps %%x0, %%x1, %%x0", op);
        v = jit_asm(j, text, vf, "=&v", 1, &v, (const char *const[]){"v"});
        snprintf(text, sizeof text, "vmovshdup %%x1, %%x0\n\tv%sss %%x0, %%x1, %%x0", op);
        return jit_asm(j, text, jit_types(j)->f32, "=&v", 1, &v, (const char *const[]){"v"});
    }
    snprintf(text, sizeof text, "movaps %%1, %%0\n\tmovhlps %%1, %%0\n\t%sps %%1, %%0", op);
    v = jit_asm(j, text, vf, "=&v", 1, &v, (const char *const[]){"v"});
    snprintf(text, sizeof text, "movaps %%1, %%0\n\tshufps $1, %%1, %%0\n\t%sss %%1, %%0", op);
    return jit_asm(j, text, jit_types(j)->f32, "=&v", 1, &v, (const char *const[]){"v"});
}

JitValue x86_hsum(Jit *j, JitValue v)
{
    return fold_lanes(j, "add", v);
}

JitValue x86_hmax(Jit *j, JitValue v)
{
    return fold_lanes(j, "max", v);
}

JitValue x86_scale(Jit *j, JitValue p, JitValue n)
{
    return asm2(j, "vscalefps %2, %1, %0", jit_types(j)->vf, p, n);
}

JitValue x86_round(Jit *j, JitValue a)
{
    return asm1(j, "vrndscaleps $8, %1, %0", jit_types(j)->vf, a);
}

bool x86_has_masks(const Jit *j)
{
    return jit_target(j)->x86 && !sse(j);
}

/* AVX-512: bits 0..n-1, in a mask register; AVX2: lanes of -1. */
static JitValue first_lanes(Jit *j, JitValue n)
{
    JitValue count = jit_cast(j, n, jit_types(j)->i32);
    if (avx512(j))
        return jit_sub(j, jit_shl(j, jit_i32(j, 1), count), jit_i32(j, 1));
    return int_mask(j, JIT_LT, jit_lane_numbers(j), jit_tmp(j, jit_splat(j, count)));
}

JitValue x86_load_masked(Jit *j, JitValue pointer, JitValue n, JitValue rest)
{
    JitType type = jit_type_of(rest);
    JitValue mask = jit_tmp(j, first_lanes(j, n));
    const JitValue v[] = {pointer, mask, rest};
    if (avx512(j))
        return jit_asm_load(j, "vmovups (%1), %0%{%2%}", type, "=v", 3, v,
                            (const char *const[]){"r", "Yk", "0"});
    JitValue got = jit_asm_load(j, "vmaskmovps (%1), %2, %0", type, "=v", 2, v,
                                (const char *const[]){"r", "v"});
    return jit_vselect(j, mask, got, rest);
}

void x86_store_masked(Jit *j, JitValue pointer, JitValue n, JitValue value)
{
    const JitValue v[] = {pointer, value, jit_tmp(j, first_lanes(j, n))};
    if (avx512(j))
        jit_asm_void(j, "vmovups %1, (%0)%{%2%}", 3, v, (const char *const[]){"r", "v", "Yk"});
    else
        jit_asm_void(j, "vmaskmovps %1, %2, (%0)", 3, v, (const char *const[]){"r", "v", "v"});
}

JitValue x86_words_to_i32(Jit *j, JitValue words)
{
    return asm1(j, "vpmovzxwd %1, %0", jit_types(j)->vi, words);
}

JitValue x86_load_bytes(Jit *j, JitValue pointer)
{
    return jit_asm_load(j, "vpmovzxbd (%1), %0", jit_types(j)->vi, "=v", 1, &pointer,
                        (const char *const[]){"r"});
}

JitValue x86_i32_to_words(Jit *j, JitValue v, JitType words)
{
    if (avx512(j))
        return asm1(j, "vpmovdw %1, %0", words, v);
    return asm1(j, "vpackusdw %1, %1, %t0\n\tvpermq $8, %t0, %t0", words, v);
}

JitValue x86_load_words(Jit *j, JitValue pointer)
{
    return jit_asm_load(j, "movq (%1), %0\n\tpunpcklwd %0, %0", jit_types(j)->vi, "=v", 1, &pointer,
                        (const char *const[]){"r"});
}

void x86_store_words(Jit *j, JitValue pointer, JitValue v)
{
    JitValue packed = jit_asm(j, "psrad $16, %0\n\tpackssdw %0, %0", jit_types(j)->vi, "=v", 1, &v,
                              (const char *const[]){"0"});
    const JitValue in[] = {pointer, packed};
    jit_asm_void(j, "movq %1, (%0)", 2, in, (const char *const[]){"r", "v"});
}

/* Both 32-bit halves of 64-bit lanes moved by one place. */
static JitValue halves(Jit *j, const char *shift, JitValue v)
{
    char text[48];
    snprintf(text, sizeof text, sse(j) ? "%s $32, %%0" : "v%s $32, %%1, %%0", shift);
    return jit_asm(j, text, jit_types(j)->vu, "=v", 1, &v,
                   sse(j) ? (const char *const[]){"0"} : (const char *const[]){"v"});
}

/* The odd lanes of b, the even ones of a; of u32. */
static JitValue odd_lanes(Jit *j, JitValue a, JitValue b)
{
    JitType vu = jit_types(j)->vu;
    if (jit_lanes(j) == 8)
        return asm2(j, "vpblendd $0xaa, %2, %1, %0", vu, a, b);
    JitValue lanes[16];
    for (int i = 0; i < jit_lanes(j); i++)
        lanes[i] = jit_cast(j, jit_i32(j, i % 2 ? -1 : 0), jit_types(j)->u32);
    JitValue odd = jit_tmp(j, jit_from_lanes(j, vu, lanes));
    return jit_tmp(j, jit_or(j, jit_and(j, a, jit_not(j, odd)), jit_and(j, b, odd)));
}

/* pmuludq multiplies the even lanes; the odd ones are shifted down, and the halves put together
 * again. */
void x86_mul_wide(Jit *j, JitValue a, JitValue b, JitValue *high, JitValue *low)
{
    JitType vu = jit_types(j)->vu;
    JitValue odd_a = halves(j, "psrlq", a);
    JitValue odd_b = halves(j, "psrlq", b);
    JitValue even = binary(j, "pmuludq", vu, a, b);
    JitValue odd = binary(j, "pmuludq", vu, odd_a, odd_b);
    *high = odd_lanes(j, halves(j, "psrlq", even), odd);
    *low = odd_lanes(j, even, halves(j, "psllq", odd));
}
