/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Dropout of a block's probabilities. */
#include "codegen/cpu/attention/attention_block.h"
#include "codegen/cpu/point/point_jit.h"
#include "codegen/cpu/point/random_words.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/jit/jit_short.h"

static JitValue generator_word(Block *b, int i)
{
    JitValue words = jit_buf(b->j, b->buf.rng, jit_types(b->j)->p_i32);
    return jit_load(b->j, words, jit_i64(b->j, i));
}

static JitValue word_lanes(Jit *j, JitValue word)
{
    return splat(j, jit_cast(j, word, jit_types(j)->i32));
}

/* The generator's key is the seed plus a number of the operation. */
static void make_key(Block *b)
{
    Jit *j = b->j;
    const JitTypes *t = jit_types(j);
    JitValue low = jit_cast(j, jit_cast(j, generator_word(b, 0), t->u32), t->u64);
    JitValue high = jit_cast(j, jit_cast(j, generator_word(b, 1), t->u32), t->u64);
    JitValue shift = jit_cast(j, jit_i64(j, 32), t->u64);
    JitValue seed = jit_or(j, low, jit_shl(j, high, shift));
    JitValue key = add(j, seed, jit_cast(j, jit_number(j, b->buf.key), t->u64));
    b->rng[0] = word_lanes(j, key);
    b->rng[1] = word_lanes(j, jit_shr(j, key, shift));
    b->rng[2] = word_lanes(j, generator_word(b, 2));
    b->rng[3] = word_lanes(j, generator_word(b, 3));
}

void block_begin_dropout(Block *b)
{
    Jit *j = b->j;
    make_key(b);
    for (int v = 0; v < b->d->blocks.block_rows / jit_lanes(j); v++)
        b->quads[v] = jit_var(j, jit_types(j)->vi, "quads");
}

/* Words of the numbers first + r * apart of the rows r of vector v. */
static void row_numbers(Block *b, JitValue first, int64_t apart, int v, JitValue *low,
                        JitValue *high)
{
    Jit *j = b->j;
    JitValue lane[16];
    for (int i = 0; i < jit_lanes(j); i++) {
        uint32_t behind = (uint32_t)(v * jit_lanes(j) + i) * (uint32_t)apart;
        lane[i] = jit_i32(j, (int32_t)behind);
    }
    JitValue behind = jit_tmp(j, jit_from_lanes(j, jit_types(j)->vi, lane));
    *low = point_place_word_at(j, first, behind, false);
    *high = point_place_word_at(j, first, behind, true);
}

/* Vectors from v on, as many as draw side by side. */
static void draw_quads(Block *b, JitValue key, int v)
{
    Jit *j = b->j;
    JitValue low[DROPOUT_DRAWS], high[DROPOUT_DRAWS], kept[DROPOUT_DRAWS];
    int64_t quads = b->d->keys / 4;
    int n = b->vectors - v < DROPOUT_DRAWS ? b->vectors - v : DROPOUT_DRAWS;
    JitValue quad = jit_tmp(j, jit_shr(j, key, jit_i64(j, 2)));
    JitValue first = jit_tmp(j, jit_muladd_i64(j, b->line, quads, quad));
    for (int i = 0; i < n; i++)
        row_numbers(b, first, quads, v + i, &low[i], &high[i]);
    dropout_quads(j, b->rng, n, low, high, b->d->p, kept);
    for (int i = 0; i < n; i++)
        jit_set(j, b->quads[v + i], kept[i]);
}

/* Where four keys begin at a multiple of four in all rows: one draw decides about them. */
static JitValue quads_kept(Block *b, JitValue key, int v)
{
    Jit *j = b->j;
    JitValue byte = jit_tmp(j, jit_and(j, key, jit_i64(j, 3)));
    if (v % DROPOUT_DRAWS == 0) {
        JitIf next = jit_if(j, jit_compare(j, JIT_EQ, byte, jit_i64(j, 0)));
        draw_quads(b, key, v);
        jit_end_if(j, &next);
    }
    JitValue up = jit_sub(j, jit_i64(j, 24), jit_mul(j, byte, jit_i64(j, 8)));
    JitValue lanes = splat(j, jit_cast(j, jit_tmp(j, up), jit_types(j)->i32));
    JitValue sign = jit_tmp(j, jit_shl(j, jit_get(b->quads[v]), lanes));
    return jit_vmask(j, JIT_LT, sign, jit_vi(j, 0));
}

/* Element (row, key) of the scores of all heads: rows are d->keys apart. */
static JitValue element_kept(Block *b, JitValue key, int v)
{
    Jit *j = b->j;
    JitValue low, high, at = jit_tmp(j, jit_muladd_i64(j, b->line, b->d->keys, key));
    row_numbers(b, at, b->d->keys, v, &low, &high);
    return dropout_kept(j, b->rng, low, high, b->d->p);
}

JitValue block_dropped(Block *b, JitValue key, int v, JitValue x)
{
    JitValue kept = b->d->keys % 4 == 0 ? quads_kept(b, key, v) : element_kept(b, key, v);
    return jit_tmp(b->j, dropout_apply(b->j, kept, x, b->d->p));
}
