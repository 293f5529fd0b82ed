/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The products of a block with rows of keys or values. */
#include "codegen/cpu/attention/attention_block.h"
#include "codegen/cpu/attention/attention_product.h"
#include "codegen/cpu/gemm/gemm_pack.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/forms/product.h"
#include "codegen/jit/jit_short.h"

static bool is_bf16(Jit *j, JitValue pointer)
{
    return jit_type_of(pointer) == jit_types(j)->p_bf16;
}

/* Rows [from, from + n) of a head's tensor as whole vectors of f32: in place where they are that,
 * else as a copy. */
static HeadRows whole_rows(Block *b, const HeadRows *of, int64_t width, int64_t stride,
                           JitValue from, JitValue n)
{
    Jit *j = b->j;
    JitValue apart = jit_i64(j, of->apart);
    JitValue at = jit_tmp(j, jit_offset(j, of->first, jit_mul(j, from, apart)));
    if (stride == width && !is_bf16(j, at))
        return (HeadRows){at, of->apart};
    if (stride != width)
        pack_zero(j, b->copy, jit_mul(j, n, jit_i64(j, stride)));
    pack_rows(j, b->copy, jit_i64(j, stride), at, apart, n, jit_i64(j, width));
    return (HeadRows){b->copy, stride};
}

/* to[key][r] for the n keys whose rows are given. */
static void some_keys(Block *b, const HeadRows *of, const BlockRows *rows, JitValue to, JitValue n)
{
    BlockProduct p = {.a = of->first,
                      .b = rows->columns,
                      .to = to,
                      .a_row = of->apart,
                      .a_step = 1,
                      .b_step = b->height,
                      .to_row = b->height,
                      .to_padded = true,
                      .columns = b->height,
                      .rows = n,
                      .steps = jit_i64(b->j, rows->width),
                      .end = TILE_PARTIAL};
    block_product(b->j, &p);
}

void block_by_keys(Block *b, const HeadRows *of, const BlockRows *rows, JitValue to)
{
    Jit *j = b->j;
    if (!is_bf16(j, of->first)) {
        some_keys(b, of, rows, to, b->keys);
        return;
    }
    JitValue most = jit_i64(j, ATTENTION_CHAIN);
    JitLoop l = jit_for(j, jit_i64(j, 0), b->keys, ATTENTION_CHAIN, "keys");
    JitValue from = jit_index(&l);
    JitValue n = jit_tmp(j, jit_min_i64(j, most, jit_sub(j, b->keys, from)));
    HeadRows copy = whole_rows(b, of, rows->width, rows->stride, from, n);
    JitValue at = jit_mul(j, from, jit_i64(j, b->height));
    some_keys(b, &copy, rows, jit_tmp(j, jit_offset(j, to, at)), n);
    jit_end_for(j, &l);
}

void block_scores(Block *b)
{
    block_by_keys(b, &b->k_head, &b->q, b->scores);
}

/* Chains of product_k_block keys, added in order. */
static void sum_over_keys(Block *b, JitValue x, const HeadRows *of, int64_t width, int64_t stride)
{
    Jit *j = b->j;
    int64_t rows = b->height, chain = product_k_block(b->d->keys);
    JitLoop l = jit_for(j, jit_i64(j, 0), b->keys, chain, "chain");
    JitValue from = jit_index(&l);
    JitValue n = jit_tmp(j, jit_min_i64(j, jit_i64(j, chain), jit_sub(j, b->keys, from)));
    JitValue first = jit_tmp(j, jit_compare(j, JIT_EQ, from, jit_i64(j, 0)));
    HeadRows whole = whole_rows(b, of, width, stride, from, n);
    BlockProduct p = {.a = jit_tmp(j, jit_offset(j, x, jit_mul(j, from, jit_i64(j, rows)))),
                      .b = whole.first,
                      .to = b->result,
                      .a_row = 1,
                      .a_step = rows,
                      .b_step = whole.apart,
                      .to_row = stride,
                      .to_padded = true,
                      .columns = width,
                      .rows = b->n,
                      .steps = n,
                      .end = TILE_PARTIAL,
                      .first = first};
    block_product(j, &p);
    jit_end_for(j, &l);
}

/* One row of the result. */
typedef struct RowCopy {
    JitValue to, to_at, from_at;
    bool causal; /* + 0 */
    JitValue from;
} RowCopy;

static void copy_vector(Jit *j, Lanes v, void *user)
{
    const RowCopy *c = user;
    JitValue x = load_lanes(j, c->from, c->from_at, v, 0);
    store_lanes(j, c->to, c->to_at, v, c->causal ? add(j, x, jit_vf(j, 0)) : x);
}

void block_times_keys(Block *b, JitValue x, const HeadRows *of, int64_t width, HeadRows to)
{
    Jit *j = b->j;
    int64_t lanes = jit_lanes(j), stride = divide_up(width, lanes) * lanes;
    sum_over_keys(b, x, of, width, stride);
    JitLoop row = jit_for(j, jit_i64(j, 0), b->n, 1, "row");
    JitValue line = jit_add(j, b->row0, jit_index(&row));
    RowCopy c = {.to = to.first,
                 .to_at = mul(j, line, jit_i64(j, to.apart)),
                 .from_at = mul(j, jit_index(&row), jit_i64(j, stride)),
                 .causal = b->d->causal,
                 .from = b->result};
    each_vector(j, width, MAX_WAYS, copy_vector, &c);
    jit_end_for(j, &row);
}
