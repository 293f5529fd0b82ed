/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/attention/attention_block.h"

#include "codegen/cpu/attention/attention_product.h"
#include "codegen/cpu/gemm/gemm_pack.h"
#include "codegen/cpu/point/point_jit.h"
#include "codegen/cpu/point/random_words.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/jit/jit_short.h"

#include "ir/support/bug.h"
#include "runtime/abi.h"

#include <math.h>

enum {
    SCRATCH_UNIT = 16, /* floats: the widest vectors */
    LINE = 16          /* floats of a cache line */
};

static int64_t whole_vectors(int64_t n)
{
    return divide_up(n, SCRATCH_UNIT) * SCRATCH_UNIT;
}

/* --- memory --- */

/* So many floats of scratch memory. */
static JitValue take(Block *b, int64_t *used, int64_t floats)
{
    JitValue p = jit_offset(b->j, jit_scratch(b->j, jit_types(b->j)->p_f32), jit_i64(b->j, *used));
    *used += whole_vectors(floats);
    return jit_tmp(b->j, p);
}

bool block_bf16(const Block *b, int buf)
{
    return jit_real_pointer(b->j, buf) == jit_types(b->j)->p_bf16;
}

static BlockRows take_rows(Block *b, int64_t *used, int64_t width)
{
    int64_t stride = whole_vectors(width), rows = b->d->blocks.block_rows;
    JitValue by_rows = take(b, used, rows * stride), by_columns = take(b, used, rows * stride);
    return (BlockRows){width, stride, by_rows, by_columns};
}

/* Every block of a head reads all keys and values, and adds to their gradients.  Rows that lie
 * apart are in few sets of the first-level cache, and the hardware does not foresee them. */
static JitValue take_copy(Block *b, int64_t *used, int buf, char tensor, int64_t width)
{
    bool apart = attention_at(b->d, tensor)->row != width;
    bool wanted = apart || block_bf16(b, buf) || width % jit_lanes(b->j);
    if (!wanted || !b->d->blocks.heads_fit)
        return NULL;
    return take(b, used, b->d->keys * whole_vectors(width));
}

static void take_scratch(Block *b)
{
    const AttentionDesc *d = b->d;
    int64_t used = 0, rows = d->blocks.block_rows;
    int64_t wide = whole_vectors(d->width > d->value_width ? d->width : d->value_width);
    b->q = take_rows(b, &used, d->width);
    if (d->grad)
        b->dout = take_rows(b, &used, d->value_width);
    b->sums = take(b, &used, rows * LINE_SUMS);
    b->result = take(b, &used, rows * wide);
    if (block_bf16(b, b->buf.k) || block_bf16(b, b->buf.v) || d->width % SCRATCH_UNIT ||
        d->value_width % SCRATCH_UNIT)
        b->copy = take(b, &used, ATTENTION_CHAIN * wide);
    b->k_copy = take_copy(b, &used, b->buf.k, 'k', d->width);
    b->v_copy = take_copy(b, &used, b->buf.v, 'v', d->value_width);
    if (d->grad) {
        b->dk_copy = take_copy(b, &used, b->buf.result + 1, 'K', d->width);
        b->dv_copy = take_copy(b, &used, b->buf.result + 2, 'V', d->value_width);
    }
    if (!d->blocks.scores_floats) {
        b->scores = take(b, &used, d->keys * rows);
        if (d->grad)
            b->dscores = take(b, &used, d->keys * rows);
    }
    if (used * 4 > SCRIMP_WORK_BYTES)
        BUG("attention needs %lld bytes of scratch", (long long)used * 4);
}

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

Block block_begin(Jit *j, const AttentionDesc *d)
{
    Block b = {.j = j, .d = d, .buf = attention_buffers(d)};
    b.vectors = (int)(d->blocks.block_rows / jit_lanes(j));
    jit_round_products(j, true);
    take_scratch(&b);
    if (!d->drops)
        return b;
    make_key(&b);
    for (int v = 0; v < b.vectors; v++)
        b.quads[v] = jit_var(j, jit_types(j)->vi, "quads");
    return b;
}

void block_part(Block *b, JitValue part)
{
    Jit *j = b->j;
    const AttentionBlocks *s = &b->d->blocks;
    int64_t floats = s->scores_floats + s->sums_floats;
    if (!floats)
        return;
    JitValue at = jit_mul(j, part, jit_i64(j, floats));
    b->part = jit_tmp(j, jit_offset(j, buf_f32(j, b->buf.workspace), at));
    if (!s->scores_floats)
        return;
    b->scores = b->part;
    b->dscores = jit_tmp(j, jit_offset(j, b->part, jit_i64(j, b->d->keys * s->block_rows)));
}

void block_lower(Lowering *l, const Node *n, KernelEmit *emit)
{
    AttentionDesc d = attention_describe(l, n);
    CallBuf bufs[CALL_MAX_BUFS];
    int n_bufs = attention_bufs(l, n, bufs);
    CallDraft call =
        pod_call(l, op_name(n->op), &d, DESC_BYTES(AttentionDesc), d.blocks.parts, bufs, n_bufs);
    pod_count_work(l, &call);
    call.emit = emit;
    call.contract = true;
    if (call.n_tasks)
        lower_call(l, call);
}

/* --- where things are --- */

HeadRows block_in_head(const Block *b, int buf, char tensor, JitValue head)
{
    Jit *j = b->j;
    const AttentionStrides *s = attention_at(b->d, tensor);
    JitValue at = jit_mul(j, head, jit_i64(j, s->head));
    if (s->batch != s->heads * s->head) {
        JitValue rest = head, inner = take_digit(j, &rest, s->heads);
        at = jit_muladd_i64(j, rest, s->batch, jit_mul(j, inner, jit_i64(j, s->head)));
    }
    return (HeadRows){jit_tmp(j, jit_offset(j, buf_f32(j, buf), jit_tmp(j, at))), s->row};
}

static JitValue bias_of(const Block *b)
{
    Jit *j = b->j;
    JitValue rest = b->head, at = jit_i64(j, 0);
    for (int i = (int)b->d->n_batch - 1; i >= 0; i--) {
        JitValue digit = take_digit(j, &rest, b->d->batch[i]);
        at = jit_muladd_i64(j, digit, b->d->bias_batch[i], at);
    }
    return jit_tmp(j, jit_offset(j, buf_f32(j, b->buf.bias), at));
}

/* of becomes f32 at `to`, where it is copied when nothing was done before. */
static void copy_rows(Block *b, HeadRows *of, JitValue to, int64_t width, JitValue before)
{
    Jit *j = b->j;
    int64_t stride = whole_vectors(width), keys = b->d->keys;
    if (!to)
        return;
    JitIf first = jit_if(j, jit_compare(j, JIT_EQ, before, jit_i64(j, 0)));
    if (stride != width)
        pack_zero(j, to, jit_i64(j, keys * stride));
    pack_rows(j, to, jit_i64(j, stride), of->first, jit_i64(j, of->apart), jit_i64(j, keys),
              jit_i64(j, width));
    jit_end_if(j, &first);
    *of = (HeadRows){to, stride};
}

void block_head(Block *b, JitValue head, JitValue before)
{
    const AttentionDesc *d = b->d;
    b->head = b->key_head = jit_tmp(b->j, head);
    if (d->group > 1)
        b->key_head = jit_tmp(b->j, divide(b->j, b->head, jit_i64(b->j, d->group)));
    b->q_head = block_in_head(b, b->buf.q, 'q', b->head);
    b->k_head = block_in_head(b, b->buf.k, 'k', b->key_head);
    b->v_head = block_in_head(b, b->buf.v, 'v', b->key_head);
    copy_rows(b, &b->k_head, b->k_copy, d->width, before);
    copy_rows(b, &b->v_head, b->v_copy, d->value_width, before);
    if (d->grad)
        b->dout_head = block_in_head(b, b->buf.dout, 'g', b->head);
    if (d->biased)
        b->bias_head = bias_of(b);
}

static void pack_block_rows(Block *b, const BlockRows *r, const HeadRows *head)
{
    Jit *j = b->j;
    int64_t rows = b->d->blocks.block_rows;
    JitValue apart = jit_i64(j, head->apart);
    JitValue from = jit_offset(j, head->first, jit_mul(j, b->row0, apart));
    PackPanel pack = {b->vectors, rows, 1, r->stride};
    pack_zero(j, r->rows, jit_i64(j, rows * r->stride));
    pack_rows(j, r->rows, jit_i64(j, r->stride), from, apart, b->n, jit_i64(j, r->width));
    pack_panel(j, &pack, r->columns, r->rows, jit_i64(j, r->width), NULL);
}

void block_rows(Block *b, JitValue row0, JitValue n)
{
    Jit *j = b->j;
    const AttentionDesc *d = b->d;
    b->row0 = jit_tmp(j, row0);
    b->n = jit_tmp(j, n);
    b->line = jit_tmp(j, jit_muladd_i64(j, b->head, d->rows, b->row0));
    b->keys = b->open_keys = jit_i64(j, d->keys);
    if (d->causal) {
        b->keys = jit_tmp(j, jit_min_i64(j, jit_add(j, b->row0, b->n), b->keys));
        b->open_keys = jit_tmp(j, jit_min_i64(j, add(j, b->row0, jit_i64(j, 1)), b->open_keys));
    }
    JitValue first = splat(j, jit_cast(j, b->row0, jit_types(j)->i32));
    for (int v = 0; v < b->vectors; v++)
        b->row_number[v] = add(j, add(j, first, jit_lane_numbers(j)), jit_vi(j, v * jit_lanes(j)));
    pack_block_rows(b, &b->q, &b->q_head);
    if (d->grad)
        pack_block_rows(b, &b->dout, &b->dout_head);
}

static void ask_for_rows(Block *b, int buf, char tensor, JitValue head, int64_t width)
{
    Jit *j = b->j;
    if (attention_at(b->d, tensor)->row == width)
        return;
    HeadRows rows = block_in_head(b, buf, tensor, head);
    JitLoop l = jit_for(j, b->row0, jit_tmp(j, jit_add(j, b->row0, b->n)), 1, "ahead");
    JitValue at = jit_tmp(j, jit_mul(j, jit_index(&l), jit_i64(j, rows.apart)));
    JitValue row = jit_tmp(j, jit_offset(j, rows.first, at));
    for (int64_t i = 0; i < width; i += LINE)
        jit_prefetch_line(j, jit_offset(j, row, jit_i64(j, i)), false);
    jit_end_for(j, &l);
}

void block_ahead(Block *b)
{
    JitValue one = jit_i64(b->j, 1), head = jit_tmp(b->j, jit_add(b->j, b->head, one));
    JitValue key_head = jit_tmp(b->j, jit_add(b->j, b->key_head, one));
    ask_for_rows(b, b->buf.q, 'q', head, b->d->width);
    ask_for_rows(b, b->buf.k, 'k', key_head, b->d->width);
    ask_for_rows(b, b->buf.v, 'v', key_head, b->d->value_width);
    if (b->d->grad)
        ask_for_rows(b, b->buf.dout, 'g', head, b->d->value_width);
}

/* --- keys --- */

static void keys_between(Block *b, JitValue from, JitValue to, BlockStep *step, void *user)
{
    Jit *j = b->j;
    int64_t rows = b->d->blocks.block_rows;
    JitLoop l = jit_for(j, from, to, 1, "key");
    JitValue key = jit_index(&l), place = mul(j, key, jit_i64(j, rows));
    for (int v = 0; v < b->vectors; v++)
        step(b, key, jit_tmp(j, jit_add(j, place, jit_i64(j, v * jit_lanes(j)))), v, user);
    jit_end_for(j, &l);
}

void block_each_key(Block *b, BlockStep *step, void *user)
{
    keys_between(b, jit_i64(b->j, 0), b->open_keys, step, user);
    if (!b->d->causal)
        return;
    b->masked = true;
    keys_between(b, b->open_keys, b->keys, step, user);
    b->masked = false;
}

JitValue block_score(Block *b, JitValue key, JitValue place, int v)
{
    Jit *j = b->j;
    JitValue x = jit_vload_aligned(j, b->scores, place);
    if (b->d->scale != 1)
        x = mul(j, x, jit_vf(j, b->d->scale));
    if (b->d->biased)
        x = add(j, x, splat(j, jit_load(j, b->bias_head, key)));
    if (b->masked)
        x = jit_tmp(j, jit_vselect(j, block_open(b, key, v), x, jit_vf(j, -(double)INFINITY)));
    return x;
}

JitValue block_open(Block *b, JitValue key, int v)
{
    JitValue s = splat(b->j, jit_cast(b->j, key, jit_types(b->j)->i32));
    return jit_tmp(b->j, jit_vmask(b->j, JIT_GE, b->row_number[v], s));
}

/* --- dropout --- */

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

/* --- sums of lines --- */

static JitValue sum_place(Block *b, JitValue key, int v)
{
    Jit *j = b->j;
    JitValue sum = jit_and(j, key, jit_i64(j, LINE_SUMS - 1));
    return jit_tmp(j,
                   jit_muladd_i64(j, sum, b->d->blocks.block_rows, jit_i64(j, v * jit_lanes(j))));
}

void block_sums_clear(Block *b)
{
    pack_zero(b->j, b->sums, jit_i64(b->j, b->d->blocks.block_rows * LINE_SUMS));
}

void block_sums_add(Block *b, JitValue key, int v, JitValue x)
{
    JitValue at = sum_place(b, key, v);
    jit_vstore_aligned(b->j, b->sums, at, add(b->j, jit_vload_aligned(b->j, b->sums, at), x));
}

/* As line_sum and line_fold, which have the partial sums in lanes. */
static void emit_fold(Jit *j, int64_t rows)
{
    JitValue sum[LINE_SUMS], p = jit_param(j, 0);
    for (int i = 0; i < LINE_SUMS; i++)
        sum[i] = jit_vload_aligned(j, p, jit_i64(j, i * rows));
    for (int i = 0; i < LINE_LANES; i++) {
        JitValue low = add(j, sum[i], sum[LINE_LANES + i]);
        JitValue high = add(j, sum[2 * LINE_LANES + i], sum[3 * LINE_LANES + i]);
        sum[i] = add(j, low, high);
    }
    for (int n = LINE_LANES; n > 1; n /= 2)
        for (int i = 0; i < n / 2; i++)
            sum[i] = add(j, sum[i], sum[i + n / 2]);
    jit_vstore_aligned(j, p, jit_i64(j, 0), sum[0]);
}

JitValue block_sums(Block *b, int v)
{
    Jit *j = b->j;
    JitFunction f = jit_function_lookup(j, "fold_lines");
    if (!f) {
        f = jit_function_begin(j, "fold_lines", jit_types(j)->none, 1, &jit_types(j)->p_f32);
        emit_fold(j, b->d->blocks.block_rows);
        jit_function_end(j);
    }
    JitValue p = jit_tmp(j, jit_offset(j, b->sums, jit_i64(j, v * jit_lanes(j))));
    jit_call_void(j, f, 1, &p);
    return jit_vload_aligned(j, p, jit_i64(j, 0));
}

/* --- a number for each row --- */

/* Rows of vector v that are there: 0 to all lanes, i64. */
static JitValue rows_in(Block *b, int v)
{
    Jit *j = b->j;
    return jit_tmp(j, jit_min_i64(j, jit_sub(j, b->n, jit_i64(j, v * jit_lanes(j))),
                                  jit_i64(j, jit_lanes(j))));
}

JitValue block_load(Block *b, JitValue p, int v, double fill)
{
    Jit *j = b->j;
    JitValue rows = rows_in(b, v), first = add(j, b->line, jit_i64(j, v * jit_lanes(j)));
    JitVar x = jit_var(j, jit_types(j)->vf, "rows");
    jit_set(j, x, jit_vf(j, fill));
    JitIf any = jit_if(j, jit_compare(j, JIT_GT, rows, jit_i64(j, 0)));
    jit_set(j, x, jit_vload_partial(j, p, first, rows, fill));
    jit_end_if(j, &any);
    return jit_get(x);
}

void block_store(Block *b, JitValue p, int v, JitValue x)
{
    Jit *j = b->j;
    JitValue rows = rows_in(b, v), first = add(j, b->line, jit_i64(j, v * jit_lanes(j)));
    JitIf any = jit_if(j, jit_compare(j, JIT_GT, rows, jit_i64(j, 0)));
    jit_vstore_partial(j, p, first, rows, x);
    jit_end_if(j, &any);
}
