/* SPDX-License-Identifier: GPL-3.0-or-later */
/* codegen/forms/gather.h, element by element.  Of scatter_add, a task has lines that lie side by
 * side: it adds to them in the order of the index. */
#include "codegen/forms/gather.h"
#include "codegen/cpu/point/point_jit.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/cpu/rules.h"
#include "codegen/jit/jit_short.h"

static JitValue load_index(Jit *j, const GatherDesc *d, int buf, JitValue at)
{
    JitValue p = jit_buf(j, buf, point_pointer(j, (DType)d->index_type));
    return jit_tmp(j, jit_cast(j, jit_load(j, p, at), jit_types(j)->i64));
}

/* x, index, y */
static void emit_gather(Jit *j, const void *desc)
{
    const GatherDesc *d = desc;
    const AxisShape *a = &d->shape;
    JitType p = bits_pointer(j, dtype_bytes((DType)d->element_type));
    JitValue x = jit_buf(j, 0, p), y = jit_buf(j, 2, p), first, last;
    task_items(j, items_per_task(1), a->outer * d->count * a->inner, &first, &last);
    JitLoop at = jit_for(j, first, last, 1, "at");
    JitValue rest = jit_tmp(j, jit_index(&at)), inner = take_digit(j, &rest, a->inner);
    take_digit(j, &rest, d->count);
    JitValue i = jit_max_i64(j, load_index(j, d, 1, jit_index(&at)), jit_i64(j, 0));
    i = jit_tmp(j, jit_min_i64(j, jit_tmp(j, i), jit_i64(j, a->length - 1)));
    JitValue row = jit_tmp(j, jit_muladd_i64(j, rest, a->length, i));
    JitValue from = jit_tmp(j, jit_muladd_i64(j, row, a->inner, inner));
    jit_store(j, y, jit_index(&at), jit_load(j, x, from));
    jit_end_for(j, &at);
}

void cpu_gather(Lowering *l, const Node *n)
{
    GatherDesc d = gather_describe(l, n, n->in[0], n->in[1]);
    int64_t elements = d.shape.outer * d.count * d.shape.inner;
    CallBuf bufs[CALL_MAX_BUFS];
    int n_bufs = node_bufs(n, bufs);
    lower_pod_call(l, "gather", emit_gather, &d, DESC_BYTES(GatherDesc),
                   divide_up(elements, items_per_task(1)), bufs, n_bufs);
}

typedef struct Scatter {
    const GatherDesc *d;
    LineBlock lines;
    JitValue from, to;
} Scatter;

static JitValue sums(Jit *j, const GatherDesc *d, int i)
{
    return d->element_type == DTYPE_I32 ? jit_buf(j, i, jit_types(j)->p_i32) : buf_f32(j, i);
}

static void clear_lines(Jit *j, const Scatter *s)
{
    JitType element = s->d->element_type == DTYPE_I32 ? jit_types(j)->i32 : jit_types(j)->f32;
    JitLoop k = jit_for(j, jit_i64(j, 0), jit_i64(j, s->d->shape.length), 1, "k");
    JitValue start =
        line_block_place(j, &s->d->shape, &s->lines, s->d->shape.length, jit_index(&k));
    JitLoop c = jit_for(j, jit_i64(j, 0), s->lines.n, 1, "column");
    jit_store(j, s->to, add(j, start, jit_index(&c)), jit_zero(j, element));
    jit_end_for(j, &c);
    jit_end_for(j, &k);
}

static void add_element(Jit *j, const Scatter *s, JitValue at, JitValue column)
{
    const AxisShape *a = &s->d->shape;
    JitValue i = load_index(j, s->d, 0, at);
    JitIf above = jit_if(j, jit_compare(j, JIT_GE, i, jit_i64(j, 0)));
    JitIf below = jit_if(j, jit_compare(j, JIT_LT, i, jit_i64(j, a->length)));
    JitValue to = add(j, line_block_place(j, a, &s->lines, a->length, i), column);
    JitValue x = jit_load(j, s->from, at);
    jit_store(j, s->to, to, jit_add(j, jit_load(j, s->to, to), x));
    jit_end_if(j, &below);
    jit_end_if(j, &above);
}

static void add_lines(Jit *j, const Scatter *s)
{
    JitLoop k = jit_for(j, jit_i64(j, 0), jit_i64(j, s->d->count), 1, "k");
    JitValue start = line_block_place(j, &s->d->shape, &s->lines, s->d->count, jit_index(&k));
    JitLoop c = jit_for(j, jit_i64(j, 0), s->lines.n, 1, "column");
    add_element(j, s, add(j, start, jit_index(&c)), jit_index(&c));
    jit_end_for(j, &c);
    jit_end_for(j, &k);
}

static int64_t scatter_items(const GatherDesc *d)
{
    return items_per_task((d->shape.length + d->count) * line_block_most(&d->shape));
}

/* index, src, out */
static void emit_scatter_add(Jit *j, const void *desc)
{
    const GatherDesc *d = desc;
    JitValue first, last;
    Scatter s = {.d = d, .from = sums(j, d, 1), .to = sums(j, d, 2)};
    task_items(j, scatter_items(d), line_blocks(&d->shape), &first, &last);
    JitLoop item = jit_for(j, first, last, 1, "item");
    s.lines = line_block(j, &d->shape, jit_index(&item));
    clear_lines(j, &s);
    add_lines(j, &s);
    jit_end_for(j, &item);
}

void cpu_scatter_add(Lowering *l, const Node *n)
{
    GatherDesc d = gather_describe(l, n, n->out[0], n->in[0]);
    CallBuf bufs[CALL_MAX_BUFS];
    int n_bufs = node_bufs(n, bufs);
    lower_pod_call(l, "scatter_add", emit_scatter_add, &d, DESC_BYTES(GatherDesc),
                   divide_up(line_blocks(&d.shape), scatter_items(&d)), bufs, n_bufs);
}
