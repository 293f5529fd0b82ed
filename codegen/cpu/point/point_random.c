/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random numbers: dropout and random. */
#include "codegen/cpu/point/point_jit.h"
#include "codegen/cpu/point/random_words.h"
#include "codegen/jit/jit_short.h"
#include "ir/random.h"
#include "ir/support/bug.h"

/* (x, key low, key high, step low, step high, number low, number high) */
static JitValue dropout(Jit *j, const PointInstr *p, const JitValue *in)
{
    return dropout_apply(j, dropout_kept(j, in + 1, in[5], in[6], p->a), in[0], p->a);
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
    random_words(j, in, in[4], in[5], word);
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
