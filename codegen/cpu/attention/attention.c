/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention: a task is a block of rows of one head. */
#include "codegen/cpu/attention/attention_block.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/cpu/rules.h"
#include "codegen/jit/jit_short.h"

#include <math.h>

typedef struct Softmax {
    JitVar max[BLOCK_VECTORS_MOST];
    JitValue top[BLOCK_VECTORS_MOST], scale[BLOCK_VECTORS_MOST]; /* 1 / sum */
} Softmax;

static void max_step(Block *b, JitValue key, JitValue place, int v, void *user)
{
    Softmax *s = user;
    JitValue x = block_score(b, key, place, v);
    jit_vstore_aligned(b->j, b->scores, place, x);
    jit_set(b->j, s->max[v], jit_vmax_keep(b->j, x, jit_get(s->max[v])));
}

static void exp_step(Block *b, JitValue key, JitValue place, int v, void *user)
{
    const Softmax *s = user;
    JitValue x = jit_vload_aligned(b->j, b->scores, place);
    JitValue e = jit_tmp(b->j, jit_vexp_below(b->j, sub(b->j, x, s->top[v])));
    jit_vstore_aligned(b->j, b->scores, place, e);
    block_sums_add(b, key, v, e);
}

static void scale_step(Block *b, JitValue key, JitValue place, int v, void *user)
{
    const Softmax *s = user;
    JitValue p = mul(b->j, jit_vload_aligned(b->j, b->scores, place), s->scale[v]);
    jit_vstore_aligned(b->j, b->scores, place, b->d->drops ? block_dropped(b, key, v, p) : p);
}

static void softmax(Block *b)
{
    Jit *j = b->j;
    Softmax s;
    for (int v = 0; v < b->vectors; v++) {
        s.max[v] = jit_var(j, jit_types(j)->vf, "max");
        jit_set(j, s.max[v], jit_vf(j, -(double)INFINITY));
    }
    block_each_key(b, max_step, &s);
    for (int v = 0; v < b->vectors; v++) {
        s.top[v] = jit_tmp(j, jit_get(s.max[v]));
        block_store(b, buf_f32(j, b->buf.max), v, s.top[v]);
    }
    block_sums_clear(b);
    block_each_key(b, exp_step, &s);
    for (int v = 0; v < b->vectors; v++) {
        JitValue sum = block_sums(b, v);
        block_store(b, buf_f32(j, b->buf.sum), v, sum);
        s.scale[v] = divide(j, jit_vf(j, 1), sum);
    }
    block_each_key(b, scale_step, &s);
}

static void emit_rows(Block *b, void *user)
{
    (void)user;
    block_scores(b);
    softmax(b);
    block_times_keys(b, b->scores, &b->v_head, b->d->value_width,
                     block_in_head(b, b->buf.result, 'o', b->head));
}

/* first: of those that the thread has one after another. */
static void one_block(Block *b, JitValue item, JitValue first, int64_t blocks)
{
    Jit *j = b->j;
    int64_t rows = b->d->blocks.block_rows;
    JitValue rest = item, block = take_digit(j, &rest, blocks);
    JitValue row0 = mul(j, block, jit_i64(j, rows));
    block_head(b, rest, jit_tmp(j, jit_min_i64(j, block, jit_sub(j, item, first))));
    block_of_rows(b, jit_tmp(j, row0), jit_i64(j, b->d->rows), emit_rows, NULL);
}

static void emit_attention(Jit *j, const void *desc)
{
    const AttentionDesc *d = desc;
    Block b = block_begin(j, d);
    int64_t blocks = divide_up(d->rows, d->blocks.block_rows);
    JitValue first =
        jit_tmp(j, part_start(j, jit_task_begin(j), d->heads * blocks, d->blocks.parts));
    JitLoop task = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "task");
    JitValue number = jit_index(&task);
    block_part(&b, number);
    JitLoop item = jit_for(
        j, part_start(j, number, d->heads * blocks, d->blocks.parts),
        part_start(j, jit_add(j, number, jit_i64(j, 1)), d->heads * blocks, d->blocks.parts), 1,
        "block");
    one_block(&b, jit_index(&item), first, blocks);
    jit_end_for(j, &item);
    jit_end_for(j, &task);
}

void cpu_attention(Lowering *l, const Node *n)
{
    block_lower(l, n, emit_attention);
}
