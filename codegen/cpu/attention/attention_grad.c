/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The gradient of attention: a task is some heads of keys, for dk and dv are sums over all rows of
 * those that read one.  Of each head they are chains of product_k_block rows, added in order; the
 * chain that is being made lies in place of the sum when it is the first, else in the workspace.
 * So does the sum of a head in place of the one over heads.  That lies in place of the result, or,
 * where that is bf16, in the workspace. */
#include "codegen/cpu/attention/attention_block.h"
#include "codegen/cpu/attention/attention_product.h"
#include "codegen/cpu/gemm/gemm_pack.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/cpu/rules.h"
#include "codegen/forms/product.h"
#include "codegen/jit/jit_short.h"

typedef struct Gradient {
    Block b;
    JitValue dq, dk, dv;       /* of the head; of its keys */
    JitValue dk_all, dv_all;   /* sums over heads */
    JitValue heads, chains;    /* dk's and dv's sums and chains that are not the first */
    JitVar dk_sum, dv_sum;     /* where the head's sums lie */
    JitVar dk_chain, dv_chain; /* and their chains */
    JitValue max[BLOCK_VECTORS_MOST], scale[BLOCK_VECTORS_MOST]; /* 1 / sum */
    JitValue dot[BLOCK_VECTORS_MOST]; /* sum of probabilities times their gradients */
} Gradient;

/* --- scores --- */

/* The generator is asked once: until the second pass over the keys a sign says what it dropped. */
static JitValue mark_dropped(Block *b, JitValue key, int v, JitValue p, JitValue *dp)
{
    Jit *j = b->j;
    JitValue factor = block_dropped(b, key, v, jit_tmp(j, jit_vf(j, 1)));
    JitValue kept = jit_tmp(j, jit_vmask(j, JIT_GT, factor, jit_vf(j, 0)));
    *dp = jit_tmp(j, jit_vselect(j, kept, mul(j, *dp, factor), jit_vf(j, 0)));
    return jit_tmp(j, jit_vselect(j, kept, p, neg(j, p)));
}

static JitValue drop_marked(Block *b, JitValue marked, JitValue p)
{
    Jit *j = b->j;
    JitValue bits = jit_tmp(j, jit_bitcast(j, marked, jit_types(j)->vi));
    JitValue dropped = jit_tmp(j, jit_vmask(j, JIT_LT, bits, jit_vi(j, 0)));
    JitValue scaled = mul(j, p, jit_vf(j, 1 / (1 - b->d->p)));
    return jit_tmp(j, jit_vselect(j, dropped, sub(j, p, p), scaled)); /* NaN has any sign */
}

/* Probabilities again, the gradients before dropout, and the sum of their products. */
static void dot_step(Block *b, JitValue key, JitValue place, int v, void *user)
{
    const Gradient *g = user;
    Jit *j = b->j;
    JitValue x = sub(j, block_score(b, key, place, v), g->max[v]);
    JitValue p = mul(j, jit_tmp(j, jit_vexp_below(j, x)), g->scale[v]);
    JitValue dp = jit_vload_aligned(j, b->dscores, place), marked = p;
    if (b->d->drops) {
        marked = mark_dropped(b, key, v, p, &dp);
        jit_vstore_aligned(j, b->dscores, place, dp);
    }
    jit_vstore_aligned(j, b->scores, place, marked);
    block_sums_add(b, key, v, mul(j, dp, p));
}

static void score_step(Block *b, JitValue key, JitValue place, int v, void *user)
{
    const Gradient *g = user;
    Jit *j = b->j;
    JitValue marked = jit_vload_aligned(j, b->scores, place);
    JitValue p = b->d->drops ? jit_tmp(j, jit_vabs(j, marked)) : marked;
    JitValue ds = mul(j, p, sub(j, jit_vload_aligned(j, b->dscores, place), g->dot[v]));
    if (b->masked)
        ds = jit_tmp(j, jit_vselect(j, block_open(b, key, v), ds, jit_vf(j, 0)));
    if (b->d->scale != 1)
        ds = mul(j, ds, jit_vf(j, b->d->scale));
    jit_vstore_aligned(j, b->dscores, place, ds);
    if (b->d->drops)
        jit_vstore_aligned(j, b->scores, place, drop_marked(b, marked, p));
}

static void score_gradients(Gradient *g)
{
    Block *b = &g->b;
    Jit *j = b->j;
    for (int v = 0; v < b->vectors; v++) {
        g->max[v] = jit_tmp(j, block_load(b, buf_f32(j, b->buf.max), v, 0));
        JitValue sum = jit_tmp(j, block_load(b, buf_f32(j, b->buf.sum), v, 1));
        g->scale[v] = divide(j, jit_vf(j, 1), sum);
    }
    block_scores(b);
    block_by_keys(b, b->v_head, &b->dout, b->dscores); /* gradients of dropped probabilities */
    block_sums_clear(b);
    block_each_key(b, dot_step, g);
    for (int v = 0; v < b->vectors; v++)
        g->dot[v] = block_sums(b, v);
    block_each_key(b, score_step, g);
}

/* --- sums over rows --- */

/* chain[key][c] goes on with the block's rows: x[key][r] * of[r][c] */
static void add_rows(Block *b, JitValue x, const BlockRows *of, JitVar chain)
{
    int64_t rows = b->d->blocks.block_rows;
    BlockProduct p = {.a = x,
                      .b = of->rows,
                      .to = jit_tmp(b->j, jit_get(chain)),
                      .a_row = rows,
                      .a_step = 1,
                      .b_step = of->stride,
                      .to_row = of->width,
                      .columns = of->width,
                      .rows = b->keys,
                      .steps = b->n,
                      .end = TILE_CHAIN};
    block_product(b->j, &p);
}

static void one_block(Gradient *g, JitValue row0, JitValue end)
{
    Block *b = &g->b;
    Jit *j = b->j;
    JitValue rows = jit_i64(j, b->d->blocks.block_rows);
    block_rows(b, row0, jit_min_i64(j, rows, sub(j, end, row0)));
    score_gradients(g);
    add_rows(b, b->scores, &b->dout, g->dv_chain);
    add_rows(b, b->dscores, &b->q, g->dk_chain);
    block_times_keys(b, b->dscores, b->k_head, b->d->width, g->dq);
}

/* Keys that rows before `end` see. */
static JitValue keys_before(const Block *b, JitValue end)
{
    JitValue keys = jit_i64(b->j, b->d->keys);
    return b->d->causal ? jit_tmp(b->j, jit_min_i64(b->j, end, keys)) : keys;
}

static void add_chain(Jit *j, JitValue to, JitValue from, JitValue n)
{
    JitValue lanes = jit_i64(j, jit_lanes(j));
    JitValue whole = jit_tmp(j, jit_sub(j, n, jit_mod(j, n, lanes)));
    JitLoop l = jit_for(j, jit_i64(j, 0), whole, jit_lanes(j), "i");
    JitValue sum = add(j, jit_vload(j, to, jit_index(&l)), jit_vload(j, from, jit_index(&l)));
    jit_vstore(j, to, jit_index(&l), sum);
    jit_end_for(j, &l);
    l = jit_for(j, whole, n, 1, "i");
    sum = jit_add(j, jit_load(j, to, jit_index(&l)), jit_load(j, from, jit_index(&l)));
    jit_store(j, to, jit_index(&l), jit_tmp(j, sum));
    jit_end_for(j, &l);
}

/* More than one. */
static bool has_chains(const AttentionDesc *d)
{
    return d->rows > ATTENTION_CHAIN;
}

/* Where the sums lie; those of one head of keys at a time are in the workspace. */
static void place_sums(Gradient *g)
{
    Block *b = &g->b;
    Jit *j = b->j;
    const AttentionDesc *d = b->d;
    int64_t used = d->blocks.scores_floats;
    int64_t dk = d->keys * d->width, dv = d->keys * d->value_width;
    g->dk_all = g->dk, g->dv_all = g->dv;
    if (has_chains(d)) {
        g->chains = jit_tmp(j, jit_offset(j, b->part, jit_i64(j, used)));
        used += dk + dv;
    }
    if (d->group > 1) {
        g->heads = jit_tmp(j, jit_offset(j, b->part, jit_i64(j, used)));
        used += dk + dv;
    }
    if (block_bf16(b, b->buf.k)) {
        g->dk_all = jit_tmp(j, jit_offset(j, b->part, jit_i64(j, used)));
        used += dk;
    }
    if (block_bf16(b, b->buf.v))
        g->dv_all = jit_tmp(j, jit_offset(j, b->part, jit_i64(j, used)));
}

static JitValue of_values(const Gradient *g, JitValue of_keys)
{
    return jit_offset(g->b.j, of_keys, jit_i64(g->b.j, g->b.d->keys * g->b.d->width));
}

static void begin_head(Gradient *g, JitValue member)
{
    Jit *j = g->b.j;
    jit_set(j, g->dk_sum, g->dk_all);
    jit_set(j, g->dv_sum, g->dv_all);
    if (g->b.d->group == 1)
        return;
    JitIf later = jit_if(j, jit_compare(j, JIT_GT, member, jit_i64(j, 0)));
    jit_set(j, g->dk_sum, g->heads);
    jit_set(j, g->dv_sum, of_values(g, g->heads));
    jit_end_if(j, &later);
}

static void end_head(Gradient *g, JitValue member)
{
    Jit *j = g->b.j;
    const AttentionDesc *d = g->b.d;
    if (d->group == 1)
        return;
    JitIf later = jit_if(j, jit_compare(j, JIT_GT, member, jit_i64(j, 0)));
    add_chain(j, g->dk_all, g->heads, jit_i64(j, d->keys * d->width));
    add_chain(j, g->dv_all, jit_tmp(j, of_values(g, g->heads)),
              jit_i64(j, d->keys * d->value_width));
    jit_end_if(j, &later);
}

/* Chains begin with zeros, so that any of their blocks goes on with them. */
static void begin_chains(Gradient *g, JitValue first, JitValue keys)
{
    Block *b = &g->b;
    Jit *j = b->j;
    JitVar n = jit_var(j, jit_types(j)->i64, "keys");
    jit_set(j, g->dk_chain, jit_get(g->dk_sum));
    jit_set(j, g->dv_chain, jit_get(g->dv_sum));
    jit_set(j, n, jit_i64(j, b->d->keys)); /* of the first: those without rows, too */
    if (has_chains(b->d)) {
        JitIf later = jit_if(j, jit_compare(j, JIT_GT, first, jit_i64(j, 0)));
        jit_set(j, g->dk_chain, g->chains);
        jit_set(j, g->dv_chain, of_values(g, g->chains));
        jit_set(j, n, keys);
        jit_end_if(j, &later);
    }
    pack_zero(j, jit_get(g->dk_chain), jit_mul(j, jit_get(n), jit_i64(j, b->d->width)));
    pack_zero(j, jit_get(g->dv_chain), jit_mul(j, jit_get(n), jit_i64(j, b->d->value_width)));
}

static void end_chains(Gradient *g, JitValue first, JitValue keys)
{
    Block *b = &g->b;
    Jit *j = b->j;
    if (!has_chains(b->d))
        return;
    JitIf later = jit_if(j, jit_compare(j, JIT_GT, first, jit_i64(j, 0)));
    add_chain(j, jit_tmp(j, jit_get(g->dk_sum)), jit_get(g->dk_chain),
              jit_tmp(j, jit_mul(j, keys, jit_i64(j, b->d->width))));
    add_chain(j, jit_tmp(j, jit_get(g->dv_sum)), jit_get(g->dv_chain),
              jit_tmp(j, jit_mul(j, keys, jit_i64(j, b->d->value_width))));
    jit_end_if(j, &later);
}

typedef struct SumCopy {
    JitValue to, from;
} SumCopy;

static void copy_vector(Jit *j, Lanes v, void *user)
{
    const SumCopy *c = user;
    store_lanes(j, c->to, NULL, v, load_lanes(j, c->from, NULL, v, 0));
}

/* Nothing to do for a sum that lies in place of its result. */
static void write_sum(Jit *j, JitValue to, JitValue sum, int64_t n)
{
    SumCopy c = {to, sum};
    if (to != sum)
        each_vector(j, n, 4, copy_vector, &c);
}

static void one_head(Gradient *g, JitValue head, JitValue member)
{
    Block *b = &g->b;
    Jit *j = b->j;
    const AttentionDesc *d = b->d;
    int64_t chain = product_k_block(d->rows);
    block_head(b, head);
    g->dq = block_in_head(b, b->buf.result, b->head, d->rows, d->width);
    begin_head(g, member);
    JitLoop l = jit_for(j, jit_i64(j, 0), jit_i64(j, d->rows), chain, "chain");
    JitValue first = jit_index(&l), rows = jit_i64(j, d->rows);
    JitValue end = jit_tmp(j, jit_min_i64(j, jit_add(j, first, jit_i64(j, chain)), rows));
    JitValue keys = keys_before(b, end);
    begin_chains(g, first, keys);
    JitLoop block = jit_for(j, first, end, d->blocks.block_rows, "rows");
    one_block(g, jit_index(&block), end);
    jit_end_for(j, &block);
    end_chains(g, first, keys);
    jit_end_for(j, &l);
    end_head(g, member);
}

/* The heads that read one of keys and values. */
static void one_group(Gradient *g, JitValue key_head)
{
    Block *b = &g->b;
    Jit *j = b->j;
    const AttentionDesc *d = b->d;
    g->dk = block_in_head(b, b->buf.result + 1, key_head, d->keys, d->width);
    g->dv = block_in_head(b, b->buf.result + 2, key_head, d->keys, d->value_width);
    place_sums(g);
    JitLoop l = jit_for(j, jit_i64(j, 0), jit_i64(j, d->group), 1, "member");
    JitValue member = jit_index(&l);
    one_head(g, jit_muladd_i64(j, key_head, d->group, member), member);
    jit_end_for(j, &l);
    write_sum(j, g->dk, g->dk_all, d->keys * d->width);
    write_sum(j, g->dv, g->dv_all, d->keys * d->value_width);
}

static void emit_gradient(Jit *j, const void *desc)
{
    const AttentionDesc *d = desc;
    Gradient g = {.b = block_begin(j, d)};
    int64_t parts = d->blocks.parts, heads = d->heads / d->group;
    g.dk_sum = jit_var(j, jit_types(j)->p_f32, "dk_sum");
    g.dv_sum = jit_var(j, jit_types(j)->p_f32, "dv_sum");
    g.dk_chain = jit_var(j, jit_types(j)->p_f32, "dk");
    g.dv_chain = jit_var(j, jit_types(j)->p_f32, "dv");
    JitLoop task = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "task");
    JitValue number = jit_index(&task), next = jit_add(j, number, jit_i64(j, 1));
    block_part(&g.b, number);
    JitLoop head = jit_for(j, part_start(j, number, heads, parts),
                           part_start(j, next, heads, parts), 1, "head");
    one_group(&g, jit_index(&head));
    jit_end_for(j, &head);
    jit_end_for(j, &task);
}

void cpu_attention_grad(Lowering *l, const Node *n)
{
    block_lower(l, n, emit_gradient);
}
