/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The gradient of attention: a task is some heads of keys, for dk and dv are sums over all rows of
 * those that read one.  Of each head they are chains of product_k_block rows, added in order, and
 * so are the heads.  Chains that are several and heads that are several are made in the workspace
 * and then added to the sum, which lies in place of the result, or, where that is bf16, in the
 * workspace. */
#include "codegen/cpu/attention/attention_block.h"
#include "codegen/cpu/attention/attention_product.h"
#include "codegen/cpu/gemm/gemm_pack.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/cpu/rules.h"
#include "codegen/forms/product.h"
#include "codegen/jit/jit_short.h"

/* dk or dv of a head of keys. */
typedef struct KeySums {
    int64_t width;
    JitValue copy; /* where the sum is made; NULL: in place of the result, or in the workspace */
    HeadRows result, all; /* all: its sum over heads */
    HeadRows head, chain; /* of the head and the chain that are being made */
} KeySums;

typedef struct Gradient {
    Block b;
    HeadRows dq; /* of the head */
    KeySums dk, dv;
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
    block_by_keys(b, &b->v_head, &b->dout, b->dscores); /* gradients of dropped probabilities */
    block_sums_clear(b);
    block_each_key(b, dot_step, g);
    for (int v = 0; v < b->vectors; v++)
        g->dot[v] = block_sums(b, v);
    block_each_key(b, score_step, g);
}

/* --- sums over rows --- */

/* The chain goes on with the block's rows: chain[key][c] + x[key][r] * of[r][c] */
static void add_rows(Block *b, JitValue x, const BlockRows *of, const HeadRows *chain)
{
    int64_t rows = b->height;
    BlockProduct p = {.a = x,
                      .b = of->rows,
                      .to = chain->first,
                      .a_row = rows,
                      .a_step = 1,
                      .b_step = of->stride,
                      .to_row = chain->apart,
                      .columns = of->width,
                      .rows = b->keys,
                      .steps = b->n,
                      .end = TILE_CHAIN};
    block_product(b->j, &p);
}

static void emit_rows(Block *b, void *user)
{
    Gradient *g = user;
    score_gradients(g);
    add_rows(b, b->scores, &b->dout, &g->dv.chain);
    add_rows(b, b->dscores, &b->q, &g->dk.chain);
    block_times_keys(b, b->dscores, &b->k_head, b->d->width, g->dq);
}

/* Keys that rows before `end` see. */
static JitValue keys_before(const Block *b, JitValue end)
{
    JitValue keys = jit_i64(b->j, b->d->keys);
    return b->d->causal ? jit_tmp(b->j, jit_min_i64(b->j, end, keys)) : keys;
}

/* What becomes of rows that are written. */
typedef struct RowsStep {
    const HeadRows *to, *from; /* from NULL: zeros */
    JitValue to_at, from_at;
    bool adds;
} RowsStep;

static void write_vector(Jit *j, Lanes v, void *user)
{
    const RowsStep *s = user;
    JitValue x = jit_vf(j, 0);
    if (s->from)
        x = load_lanes(j, s->from->first, s->from_at, v, 0);
    if (s->adds)
        x = add(j, load_lanes(j, s->to->first, s->to_at, v, 0), x);
    store_lanes(j, s->to->first, s->to_at, v, x);
}

static void write_rows(Jit *j, RowsStep s, int64_t width, JitValue rows)
{
    JitLoop l = jit_for(j, jit_i64(j, 0), rows, 1, "row");
    s.to_at = mul(j, jit_index(&l), jit_i64(j, s.to->apart));
    if (s.from)
        s.from_at = mul(j, jit_index(&l), jit_i64(j, s.from->apart));
    each_vector(j, width, MAX_WAYS, write_vector, &s);
    jit_end_for(j, &l);
}

/* The first part, of all keys, becomes the sum; later ones, of fewer, are added. */
static void add_part(Block *b, const HeadRows *sum, const HeadRows *part, int64_t width,
                     JitValue number, JitValue keys)
{
    Jit *j = b->j;
    JitIf first = jit_if(j, jit_compare(j, JIT_EQ, number, jit_i64(j, 0)));
    write_rows(j, (RowsStep){.to = sum, .from = part}, width, jit_i64(j, b->d->keys));
    jit_else(j, &first);
    write_rows(j, (RowsStep){.to = sum, .from = part, .adds = true}, width, keys);
    jit_end_if(j, &first);
}

/* More than one. */
static bool has_chains(const AttentionDesc *d)
{
    return d->rows > ATTENTION_CHAIN;
}

/* Rows for all keys in the workspace, from *used on. */
static HeadRows in_workspace(const Block *b, int64_t width, int64_t *used)
{
    HeadRows rows = {jit_tmp(b->j, jit_offset(b->j, b->part, jit_i64(b->j, *used))), width};
    *used += b->d->keys * width;
    return rows;
}

static void place_sum(Block *b, KeySums *s, int buf, char tensor, JitValue key_head, int64_t *used)
{
    s->result = s->all = block_in_head(b, buf, tensor, key_head);
    if (s->copy)
        s->all = (HeadRows){s->copy, s->width};
    else if (block_bf16(b, buf))
        s->all = in_workspace(b, s->width, used);
    s->head = b->d->group > 1 ? in_workspace(b, s->width, used) : s->all;
    s->chain = has_chains(b->d) ? in_workspace(b, s->width, used) : s->head;
}

/* Chains begin with zeros, so that any of their blocks goes on with them. */
static void begin_chain(Block *b, const KeySums *s, JitValue keys)
{
    write_rows(b->j, (RowsStep){.to = &s->chain}, s->width, keys);
}

/* Of rows from `first` on. */
static void end_chain(Block *b, const KeySums *s, JitValue first, JitValue keys)
{
    if (has_chains(b->d))
        add_part(b, &s->head, &s->chain, s->width, first, keys);
}

static void end_head(Block *b, const KeySums *s, JitValue member)
{
    if (b->d->group > 1)
        add_part(b, &s->all, &s->head, s->width, member, jit_i64(b->j, b->d->keys));
}

/* Nothing to do for a sum that lies in place of its result. */
static void write_result(Block *b, const KeySums *s)
{
    if (s->all.first != s->result.first)
        write_rows(b->j, (RowsStep){.to = &s->result, .from = &s->all}, s->width,
                   jit_i64(b->j, b->d->keys));
}

/* Rows [first, end) of the head, a chain. */
static void one_chain(Gradient *g, JitValue first, JitValue end)
{
    Block *b = &g->b;
    Jit *j = b->j;
    JitValue keys = keys_before(b, end);
    JitVar n = jit_var(j, jit_types(j)->i64, "keys");
    jit_set(j, n, keys);
    JitIf whole = jit_if(j, jit_compare(j, JIT_EQ, first, jit_i64(j, 0)));
    jit_set(j, n, jit_i64(j, b->d->keys)); /* those without rows, too */
    jit_end_if(j, &whole);
    begin_chain(b, &g->dk, jit_get(n));
    begin_chain(b, &g->dv, jit_get(n));
    JitLoop block = jit_for(j, first, end, b->d->blocks.block_rows, "rows");
    block_of_rows(b, jit_index(&block), end, emit_rows, g);
    jit_end_for(j, &block);
    end_chain(b, &g->dk, first, keys);
    end_chain(b, &g->dv, first, keys);
}

static void one_head(Gradient *g, JitValue head, JitValue member)
{
    Block *b = &g->b;
    Jit *j = b->j;
    int64_t chain = product_k_block(b->d->rows);
    block_head(b, head, member);
    g->dq = block_in_head(b, b->buf.result, 'Q', b->head);
    JitLoop l = jit_for(j, jit_i64(j, 0), jit_i64(j, b->d->rows), chain, "chain");
    JitValue first = jit_index(&l), rows = jit_i64(j, b->d->rows);
    one_chain(g, first, jit_tmp(j, jit_min_i64(j, jit_add(j, first, jit_i64(j, chain)), rows)));
    jit_end_for(j, &l);
    end_head(b, &g->dk, member);
    end_head(b, &g->dv, member);
}

/* The heads that read one of keys and values. */
static void one_group(Gradient *g, JitValue key_head)
{
    Block *b = &g->b;
    Jit *j = b->j;
    const AttentionDesc *d = b->d;
    int64_t used = d->blocks.scores_floats;
    place_sum(b, &g->dk, b->buf.result + 1, 'K', key_head, &used);
    place_sum(b, &g->dv, b->buf.result + 2, 'V', key_head, &used);
    JitLoop l = jit_for(j, jit_i64(j, 0), jit_i64(j, d->group), 1, "member");
    JitValue member = jit_index(&l);
    one_head(g, jit_muladd_i64(j, key_head, d->group, member), member);
    jit_end_for(j, &l);
    write_result(b, &g->dk);
    write_result(b, &g->dv);
}

static void emit_gradient(Jit *j, const void *desc)
{
    const AttentionDesc *d = desc;
    Gradient g = {.b = block_begin(j, d)};
    g.dk = (KeySums){.width = d->width, .copy = g.b.dk_copy};
    g.dv = (KeySums){.width = d->value_width, .copy = g.b.dv_copy};
    int64_t parts = d->blocks.parts, heads = d->heads / d->group;
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
