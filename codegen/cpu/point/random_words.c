/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/point/random_words.h"

#include "codegen/cpu/point/point_jit.h"
#include "codegen/jit/jit_short.h"

#include <string.h>

enum { ELEMENTS_A_DRAW = 4 }; /* that a lane decides about */

static JitValue unsign(Jit *j, JitValue v)
{
    return jit_tmp(j, jit_bitcast(j, v, jit_types(j)->vu));
}

static JitValue sign(Jit *j, JitValue v)
{
    return jit_tmp(j, jit_bitcast(j, v, jit_types(j)->vi));
}

static JitValue xor3(Jit *j, JitValue a, JitValue b, JitValue c)
{
    return jit_tmp(j, jit_xor(j, jit_xor(j, a, b), c));
}

/* A round of Philox4x32 (Salmon et al. 2011) on the counter c[0..4), lane by lane. */
static void philox_round(Jit *j, JitValue *c, JitValue k0, JitValue k1)
{
    JitValue a_high, a_low, b_high, b_low;
    jit_vmul_wide(j, c[0], vu(j, 0xD2511F53u), &a_high, &a_low);
    jit_vmul_wide(j, c[2], vu(j, 0xCD9E8D57u), &b_high, &b_low);
    c[0] = xor3(j, b_high, c[1], k0);
    c[1] = b_low;
    c[2] = xor3(j, a_high, c[3], k1);
    c[3] = a_low;
}

static void begin_words(Jit *j, const JitValue *key, JitValue low, JitValue high, JitValue *word)
{
    word[0] = unsign(j, low);
    word[1] = unsign(j, high);
    word[2] = unsign(j, key[2]);
    word[3] = unsign(j, key[3]);
}

/* Ten rounds of n counters side by side: a round waits for the one before. */
static void philox(Jit *j, const JitValue *key, int n, JitValue c[][4])
{
    JitValue k0 = unsign(j, key[0]), k1 = unsign(j, key[1]);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < n; i++)
            philox_round(j, c[i], k0, k1);
        k0 = add(j, k0, vu(j, 0x9E3779B9u));
        k1 = add(j, k1, vu(j, 0xBB67AE85u));
    }
}

void random_words(Jit *j, const JitValue *key, JitValue low, JitValue high, JitValue *word)
{
    JitValue c[1][4];
    begin_words(j, key, low, high, c[0]);
    philox(j, key, 1, c);
    memcpy(word, c[0], sizeof c[0]);
}

/* --- dropout --- */

/* Words are compared with the threshold as signed numbers after flipping the top bit. */
static JitValue word_keeps(Jit *j, JitValue word, double p)
{
    uint32_t threshold = dropout_threshold(p), top = 0x80000000u;
    JitValue flipped = sign(j, jit_tmp(j, jit_xor(j, word, vu(j, top))));
    return jit_vmask(j, JIT_GE, flipped, jit_vi(j, (int32_t)(threshold ^ top)));
}

/* Of four words. */
static JitValue quads_of(Jit *j, const JitValue *word, double p)
{
    JitValue quads = NULL;
    for (int w = 0; w < ELEMENTS_A_DRAW; w++) {
        JitValue byte = jit_vi(j, (int32_t)(0xffu << 8 * w));
        JitValue kept = jit_tmp(j, jit_and(j, word_keeps(j, word[w], p), jit_tmp(j, byte)));
        quads = quads ? jit_tmp(j, jit_or(j, quads, kept)) : kept;
    }
    return quads;
}

void dropout_quads(Jit *j, const JitValue *key, int n, const JitValue *low, const JitValue *high,
                   double p, JitValue *quads)
{
    JitValue c[DROPOUT_DRAWS][4];
    for (int i = 0; i < n; i++)
        begin_words(j, key, low[i], high[i], c[i]);
    philox(j, key, n, c);
    for (int i = 0; i < n; i++)
        quads[i] = quads_of(j, c[i], p);
}

/* A number divided by 4, of its words. */
static void quarter(Jit *j, JitValue *low, JitValue *high)
{
    JitValue upper = unsign(j, *high), lower = unsign(j, *low), two = vu(j, 2);
    JitValue carried = jit_tmp(j, jit_shl(j, upper, vu(j, 30)));
    *low = sign(j, jit_tmp(j, jit_or(j, jit_tmp(j, jit_shr(j, lower, two)), carried)));
    *high = sign(j, jit_tmp(j, jit_shr(j, upper, two)));
}

/* The byte of the lane's element becomes the sign of the lane. */
JitValue dropout_kept(Jit *j, const JitValue *key, JitValue low, JitValue high, double p)
{
    JitValue w = jit_tmp(j, jit_and(j, low, jit_tmp(j, jit_vi(j, ELEMENTS_A_DRAW - 1))));
    quarter(j, &low, &high);
    JitValue quads;
    dropout_quads(j, key, 1, &low, &high, p, &quads);
    JitValue up = sub(j, jit_vi(j, 24), jit_tmp(j, jit_shl(j, w, jit_tmp(j, jit_vi(j, 3)))));
    return jit_vmask(j, JIT_LT, jit_tmp(j, jit_shl(j, quads, up)), jit_vi(j, 0));
}

/* --- blocks of elements --- */

static int64_t block_elements(const Jit *j)
{
    return DROPOUT_DRAWS * ELEMENTS_A_DRAW * jit_lanes(j);
}

/* The number of the block that has element `at`, which is not negative. */
static JitValue block_of(Jit *j, JitValue at)
{
    int shift = 0;
    while ((int64_t)1 << shift < block_elements(j))
        shift++;
    return jit_tmp(j, jit_shr(j, at, jit_i64(j, shift)));
}

static JitValue block_bytes(Jit *j, const DropoutBlocks *d)
{
    return jit_array_ptr(j, d->bytes, jit_types(j)->p_u8);
}

DropoutBlocks dropout_blocks(Jit *j)
{
    const JitTypes *t = jit_types(j);
    DropoutBlocks d = {jit_array_var(j, t->u8, 3 * (int)block_elements(j), "kept"),
                       jit_array_var(j, t->i64, 2, "held")};
    JitValue held = jit_array_ptr(j, d.held, t->p_i64);
    for (int i = 0; i < 2; i++)
        jit_store(j, held, jit_i64(j, i), jit_i64(j, -1));
    return d;
}

static void store_quads(Jit *j, const DropoutBlocks *d, JitValue slot, const JitValue *quads)
{
    int lanes = jit_lanes(j);
    JitValue to = jit_array_ptr(j, d->bytes, jit_types(j)->p_i32);
    JitValue first = mul(j, slot, jit_i64(j, DROPOUT_DRAWS * lanes));
    for (int i = 0; i < DROPOUT_DRAWS; i++)
        jit_vstore_aligned(j, to, jit_add(j, first, jit_i64(j, i * lanes)), quads[i]);
}

/* The even block is kept behind the odd one, too: what begins in that one is read on from there. */
static void draw_block(Jit *j, const DropoutBlocks *d, const JitValue *key, JitValue block,
                       JitValue slot, double p)
{
    int lanes = jit_lanes(j);
    JitValue low[DROPOUT_DRAWS], high[DROPOUT_DRAWS], quads[DROPOUT_DRAWS];
    JitValue first = mul(j, block, jit_i64(j, DROPOUT_DRAWS * lanes));
    for (int i = 0; i < DROPOUT_DRAWS; i++) {
        JitValue at = add(j, first, jit_i64(j, i * lanes));
        low[i] = point_place_word(j, at, true, false);
        high[i] = point_place_word(j, at, true, true);
    }
    dropout_quads(j, key, DROPOUT_DRAWS, low, high, p, quads);
    store_quads(j, d, slot, quads);
    JitIf even = jit_if(j, jit_compare(j, JIT_EQ, slot, jit_i64(j, 0)));
    store_quads(j, d, jit_i64(j, 2), quads);
    jit_end_if(j, &even);
}

static void hold_block(Jit *j, const DropoutBlocks *d, const JitValue *key, JitValue block,
                       double p)
{
    JitValue slot = jit_tmp(j, jit_and(j, block, jit_i64(j, 1)));
    JitValue held = jit_array_ptr(j, d->held, jit_types(j)->p_i64);
    JitIf missing = jit_if(j, jit_compare(j, JIT_NE, jit_load(j, held, slot), block));
    draw_block(j, d, key, block, slot, p);
    jit_store(j, held, slot, block);
    jit_end_if(j, &missing);
}

JitValue dropout_blocks_kept(Jit *j, const DropoutBlocks *d, const JitValue *key, JitValue at,
                             double p)
{
    JitValue from = jit_tmp(j, at), last = add(j, from, jit_i64(j, jit_lanes(j) - 1));
    JitValue end = add(j, block_of(j, last), jit_i64(j, 1));
    JitLoop l = jit_for(j, block_of(j, from), end, 1, "block");
    hold_block(j, d, key, jit_tmp(j, jit_index(&l)), p);
    jit_end_for(j, &l);
    JitValue place = jit_tmp(j, jit_and(j, from, jit_i64(j, 2 * block_elements(j) - 1)));
    JitValue bytes = jit_vload_bytes(j, block_bytes(j, d), place);
    return jit_vmask(j, JIT_GT, bytes, jit_vi(j, 0));
}

JitValue dropout_apply(Jit *j, JitValue kept, JitValue x, double p)
{
    return jit_vselect(j, kept, mul(j, x, jit_vf(j, 1 / (1 - p))), vf(j, 0));
}
