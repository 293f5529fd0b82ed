/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random numbers: dropout and random. */
#include "codegen/cpu/point/point_jit.h"
#include "codegen/jit/jit_short.h"
#include "ir/random.h"
#include "ir/support/bug.h"

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

/* Replaces the counter c[0..4) by the output for key (k0, k1), lane by lane. */
static void philox(Jit *j, JitValue *c, JitValue k0, JitValue k1)
{
    JitValue m0 = vu(j, 0xD2511F53u), m1 = vu(j, 0xCD9E8D57u);
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
}

/* Random words of (key low, key high, step low, step high, index low, index high). */
static void draw(Jit *j, const JitValue *in, JitValue *word)
{
    word[0] = unsign(j, in[4]);
    word[1] = unsign(j, in[5]);
    word[2] = unsign(j, in[2]);
    word[3] = unsign(j, in[3]);
    philox(j, word, unsign(j, in[0]), unsign(j, in[1]));
}

/* (x, key low, key high, step low, step high, index low, index high): keeps x / (1 - p) where the
 * bits are at least p * 2^32.  Bits are compared with the threshold rounded up, as signed numbers
 * after flipping the top bit. */
static JitValue dropout(Jit *j, const PointInstr *p, const JitValue *in)
{
    JitValue word[4];
    draw(j, in + 1, word);
    uint32_t threshold = dropout_threshold(p->a), top = 0x80000000u;
    JitValue flipped =
        jit_tmp(j, jit_bitcast(j, jit_tmp(j, jit_xor(j, word[0], vu(j, top))), jit_types(j)->vi));
    JitValue keep = jit_vmask(j, JIT_GE, flipped, jit_vi(j, (int32_t)(threshold ^ top)));
    return jit_vselect(j, keep, mul(j, in[0], jit_vf(j, 1 / (1 - p->a))), vf(j, 0));
}

/* --- random: ir/random.h says what the numbers are --- */

static JitValue sign(Jit *j, JitValue v)
{
    return jit_tmp(j, jit_bitcast(j, v, jit_types(j)->vi));
}

static JitValue shift_right(Jit *j, JitValue v, JitValue by)
{
    return jit_tmp(j, jit_shr(j, v, by));
}

static JitValue uniform(Jit *j, const JitValue *word)
{
    JitValue upper = sign(j, shift_right(j, word[0], vu(j, 8)));
    return mul(j, jit_vi_to_vf(j, upper), vf(j, 0x1p-24));
}

static JitValue normal(Jit *j, const JitValue *word)
{
    const double pi = 3.14159265358979323846;
    JitValue half = jit_tmp(j, jit_or(j, shift_right(j, word[0], vu(j, 1)), vu(j, 1)));
    JitValue u = mul(j, jit_vi_to_vf(j, sign(j, half)), vf(j, 0x1p-31));
    JitValue turn = jit_or(j, shift_right(j, sign(j, word[1]), jit_vi(j, 7)), jit_vi(j, 1));
    JitValue angle = mul(j, jit_vi_to_vf(j, jit_tmp(j, turn)), vf(j, pi * 0x1p-25));
    JitValue radius = jit_vsqrt(j, mul(j, jit_vlog(j, u), vf(j, -2)));
    return mul(j, radius, jit_vsin(j, angle));
}

static JitValue integers(Jit *j, const JitValue *word, double below)
{
    JitValue high, low;
    jit_vmul_wide(j, word[0], vu(j, (uint32_t)below), &high, &low);
    return sign(j, high);
}

static JitValue random_numbers(Jit *j, const PointInstr *p, const JitValue *in)
{
    JitValue word[4];
    draw(j, in, word);
    switch ((RandomKind)p->k) {
    case RANDOM_UNIFORM:
        return uniform(j, word);
    case RANDOM_NORMAL:
        return normal(j, word);
    case RANDOM_INTEGERS:
        return integers(j, word, p->a);
    case RANDOM_KINDS:
        break;
    }
    BUG("no code for random numbers of kind %d", p->k);
}

/* Words of seed + k * odd constant; the carry is an unsigned comparison of the low words. */
JitValue point_rng_key(Jit *j, const PointInstr *p, const JitValue *in)
{
    JitValue low = add(j, in[0], in[2]);
    if (p->op == POINT_RNG_KEY_LOW)
        return low;
    JitValue top = jit_vi(j, INT32_MIN);
    JitValue carry =
        jit_vmask(j, JIT_LT, jit_tmp(j, jit_xor(j, low, top)), jit_tmp(j, jit_xor(j, in[0], top)));
    return sub(j, add(j, in[1], in[3]), carry);
}

const PointCode point_code_dropout = {.real = dropout};
const PointCode point_code_random = {.integer = random_numbers}; /* of the generator's state */
