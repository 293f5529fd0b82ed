/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random bits for dropout. */
#include "codegen/cpu/point/point_jit.h"
#include "codegen/jit/jit_short.h"

#include <string.h>

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
    uint32_t threshold = dropout_threshold(p->a), top = 0x80000000u;
    JitValue flipped =
        jit_tmp(j, jit_bitcast(j, jit_tmp(j, jit_xor(j, bits, vu(j, top))), jit_types(j)->vi));
    JitValue keep = jit_vmask(j, JIT_GE, flipped, jit_vi(j, (int32_t)(threshold ^ top)));
    return jit_vselect(j, keep, mul(j, in[0], jit_vf(j, 1 / (1 - p->a))), vf(j, 0));
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
