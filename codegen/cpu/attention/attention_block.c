/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/attention/attention_block.h"

#include "codegen/cpu/attention/attention_product.h"
#include "codegen/cpu/gemm/gemm_pack.h"
#include "codegen/cpu/point/point_jit.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/forms/product.h"
#include "codegen/jit/jit_short.h"

#include "ir/support/bug.h"
#include "runtime/abi.h"

#include <math.h>
#include <stdio.h>

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

Block block_begin(Jit *j, const AttentionDesc *d)
{
    Block b = {.j = j, .d = d, .buf = attention_buffers(d)};
    jit_round_products(j, true);
    take_scratch(&b);
    if (d->drops)
        block_begin_dropout(&b);
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
    JitValue apart = jit_i64(j, head->apart);
    JitValue from = jit_offset(j, head->first, jit_mul(j, b->row0, apart));
    PackPanel pack = {b->vectors, b->height, 1, r->stride};
    pack_rows(j, r->rows, jit_i64(j, r->stride), from, apart, b->n, jit_i64(j, r->width));
    pack_panel(j, &pack, r->columns, r->rows, jit_i64(j, r->width), NULL);
}

static void begin_rows(Block *b, JitValue row0, JitValue n)
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

/* Asks for what the block of the same rows reads in the next head, where the hardware does not
 * foresee it. */
static void ask_for_next(Block *b)
{
    JitValue one = jit_i64(b->j, 1), head = jit_tmp(b->j, jit_add(b->j, b->head, one));
    JitValue key_head = jit_tmp(b->j, jit_add(b->j, b->key_head, one));
    ask_for_rows(b, b->buf.q, 'q', head, b->d->width);
    ask_for_rows(b, b->buf.k, 'k', key_head, b->d->width);
    ask_for_rows(b, b->buf.v, 'v', key_head, b->d->value_width);
    if (b->d->grad)
        ask_for_rows(b, b->buf.dout, 'g', head, b->d->value_width);
}

/* Rows of the block that a head, or in the gradient a chain, may end with; 0: all are whole. */
static int64_t rows_left(const AttentionDesc *d)
{
    int64_t chain = d->grad ? product_k_block(d->rows) : d->rows, most = d->blocks.block_rows;
    int64_t last = (d->rows - 1) % chain + 1, of_last = last % most;
    int64_t of_chain = d->rows > chain ? chain % most : 0;
    return of_last > of_chain ? of_last : of_chain;
}

static void emit_body(Block *b, int64_t height, JitValue row0, JitValue n, BlockBody *body,
                      void *user)
{
    b->height = height;
    b->vectors = (int)(height / jit_lanes(b->j));
    begin_rows(b, row0, n);
    ask_for_next(b);
    body(b, user);
}

void block_of_rows(Block *b, JitValue row0, JitValue end, BlockBody *body, void *user)
{
    Jit *j = b->j;
    int64_t most = b->d->blocks.block_rows, left = rows_left(b->d), lanes = jit_lanes(j);
    int64_t height = divide_up(left, lanes) * lanes;
    JitValue all = jit_i64(j, most);
    if (!left) {
        emit_body(b, most, row0, all, body, user);
        return;
    }
    JitValue n = jit_tmp(j, jit_min_i64(j, all, sub(j, end, row0)));
    if (height == most || b->d->rows < most) {
        emit_body(b, height, row0, n, body, user);
        return;
    }
    JitIf whole = jit_if(j, jit_compare(j, JIT_EQ, n, all));
    emit_body(b, most, row0, all, body, user);
    jit_else(j, &whole);
    emit_body(b, height, row0, n, body, user);
    jit_end_if(j, &whole);
}

/* --- keys --- */

static void keys_between(Block *b, JitValue from, JitValue to, BlockStep *step, void *user)
{
    Jit *j = b->j;
    JitLoop l = jit_for(j, from, to, 1, "key");
    JitValue key = jit_index(&l), place = mul(j, key, jit_i64(j, b->height));
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

/* --- sums of lines --- */

static JitValue sum_place(Block *b, JitValue key, int v)
{
    Jit *j = b->j;
    JitValue sum = jit_and(j, key, jit_i64(j, LINE_SUMS - 1));
    return jit_tmp(j, jit_muladd_i64(j, sum, b->height, jit_i64(j, v * jit_lanes(j))));
}

void block_sums_clear(Block *b)
{
    pack_zero(b->j, b->sums, jit_i64(b->j, b->height * LINE_SUMS));
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
    char name[32];
    snprintf(name, sizeof name, "fold_lines_%lld", (long long)b->height);
    JitFunction f = jit_function_lookup(j, name);
    if (!f) {
        f = jit_function_begin(j, name, jit_types(j)->none, 1, &jit_types(j)->p_f32);
        emit_fold(j, b->height);
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
