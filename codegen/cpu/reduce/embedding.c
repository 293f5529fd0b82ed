/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Vectors run along the rows of the table; of its gradient, each task has rows of its own. */
#include "codegen/forms/embedding.h"
#include "codegen/cpu/point/point_jit.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/cpu/rules.h"
#include "codegen/jit/jit_short.h"

typedef struct Copy {
    JitValue from, to, from_offset, to_offset;
    bool add;
} Copy;

static JitValue load_id(Jit *j, const EmbeddingDesc *d, JitValue i)
{
    JitValue ids = jit_buf(j, 0, point_pointer(j, (DType)d->id_type));
    return jit_tmp(j, jit_cast(j, jit_load(j, ids, i), jit_types(j)->i64));
}

/* to = from, or to += from */
static void copy_vector(Jit *j, Lanes v, void *user)
{
    Copy *c = user;
    JitValue x = load_lanes(j, c->from, c->from_offset, v, 0);
    if (c->add)
        x = add(j, load_lanes(j, c->to, c->to_offset, v, 0), x);
    store_lanes(j, c->to, c->to_offset, v, x);
}

static JitValue row_of(Jit *j, const EmbeddingDesc *d, JitValue i)
{
    return mul(j, i, jit_i64(j, d->width));
}

/* ids, table, out */
static void emit_embedding(Jit *j, const void *desc)
{
    const EmbeddingDesc *d = desc;
    JitValue first, last;
    Copy c = {.from = buf_f32(j, 1), .to = buf_f32(j, 2)};
    task_items(j, items_per_task(d->width), d->ids, &first, &last);
    JitLoop i = jit_for(j, first, last, 1, "i");
    JitValue id = jit_max_i64(j, load_id(j, d, jit_index(&i)), jit_i64(j, 0));
    id = jit_min_i64(j, jit_tmp(j, id), jit_i64(j, d->rows - 1));
    c.from_offset = row_of(j, d, jit_tmp(j, id));
    c.to_offset = row_of(j, d, jit_index(&i));
    each_vector(j, d->width, 4, copy_vector, &c);
    jit_end_for(j, &i);
}

enum { GRAD_TASKS = 64 };

static void zero_vector(Jit *j, Lanes v, void *user)
{
    store_lanes(j, user, NULL, v, vf(j, 0));
}

static void move_vector(Jit *j, Lanes v, void *user)
{
    const Copy *c = user;
    store_lanes(j, c->to, NULL, v, load_lanes(j, c->from, NULL, v, 0));
}

/* What rows are added to: zeros, or the sum so far, which mostly lies there already. */
static void begin_rows(Jit *j, const EmbeddingDesc *d, JitValue from, JitValue end, JitValue to)
{
    if (!d->so_far) {
        each_vector_between(j, from, end, -1, 4, zero_vector, to);
        return;
    }
    Copy c = {.from = buf_f32(j, 2), .to = to};
    JitIf apart = jit_if(j, jit_compare(j, JIT_NE, c.from, c.to));
    each_vector_between(j, from, end, -1, 4, move_vector, &c);
    jit_end_if(j, &apart);
}

/* ids, dy, sum so far if there is one, table.  Task: a range of the table's rows; a call scans the
 * ids once for all of its tasks, and adds rows in the order of the ids. */
static void emit_embedding_grad(Jit *j, const void *desc)
{
    const EmbeddingDesc *d = desc;
    JitValue low = part_start(j, jit_task_begin(j), d->rows, GRAD_TASKS);
    JitValue high = part_start(j, jit_task_end(j), d->rows, GRAD_TASKS);
    Copy c = {.from = buf_f32(j, 1), .to = buf_f32(j, d->so_far ? 3 : 2), .add = true};
    begin_rows(j, d, row_of(j, d, low), row_of(j, d, high), c.to);
    JitLoop i = jit_for(j, jit_i64(j, 0), jit_i64(j, d->ids), 1, "i");
    JitValue id = load_id(j, d, jit_index(&i));
    JitIf above = jit_if(j, jit_compare(j, JIT_GE, id, low));
    JitIf below = jit_if(j, jit_compare(j, JIT_LT, id, high));
    c.from_offset = row_of(j, d, jit_index(&i));
    c.to_offset = row_of(j, d, id);
    each_vector(j, d->width, 4, copy_vector, &c);
    jit_end_if(j, &below);
    jit_end_if(j, &above);
    jit_end_for(j, &i);
}

void cpu_embedding(Lowering *l, const Node *n)
{
    EmbeddingDesc d = embedding_describe(l, n);
    CallBuf bufs[4];
    int n_bufs = embedding_bufs(n, bufs);
    lower_pod_call(l, "embedding", emit_embedding, &d, DESC_BYTES(EmbeddingDesc),
                   divide_up(d.ids, items_per_task(d.width)), bufs, n_bufs);
}

void cpu_embedding_grad(Lowering *l, const Node *n)
{
    EmbeddingDesc d = embedding_describe(l, n);
    CallBuf bufs[4];
    int n_bufs = embedding_bufs(n, bufs);
    lower_pod_call(l, "embedding_grad", emit_embedding_grad, &d, DESC_BYTES(EmbeddingDesc),
                   GRAD_TASKS, bufs, n_bufs);
}
