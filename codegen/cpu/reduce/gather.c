/* SPDX-License-Identifier: GPL-3.0-or-later */
/* codegen/forms/gather.h, element by element.  Of scatter_add, a task has up to COLUMNS lines that
 * lie side by side: it adds to them in the order of the index. */
#include "codegen/forms/gather.h"
#include "codegen/cpu/point/point_jit.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/cpu/rules.h"
#include "codegen/jit/jit_short.h"

enum { COLUMNS = 64 };

static JitValue load_index(Jit *j, const GatherDesc *d, int buf, JitValue at)
{
    JitValue p = jit_buf(j, buf, point_pointer(j, (DType)d->index_type));
    return jit_tmp(j, jit_cast(j, jit_load(j, p, at), jit_types(j)->i64));
}

/* Of elements that are moved as they are. */
static JitType bits_pointer(Jit *j, const GatherDesc *d)
{
    const JitTypes *t = jit_types(j);
    int64_t bytes = dtype_bytes((DType)d->element_type);
    return bytes == 4 ? t->p_i32 : bytes == 8 ? t->p_i64 : bytes == 2 ? t->p_i16 : t->p_u8;
}

/* x, index, y */
static void emit_gather(Jit *j, const void *desc)
{
    const GatherDesc *d = desc;
    const AxisShape *a = &d->shape;
    JitType p = bits_pointer(j, d);
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

typedef struct Columns {
    const GatherDesc *d;
    JitValue outer, first, n; /* the lines in hand: n from column `first` on */
    JitValue index, from, to;
} Columns;

static JitValue sums(Jit *j, const GatherDesc *d, int i)
{
    return d->element_type == DTYPE_I32 ? jit_buf(j, i, jit_types(j)->p_i32) : buf_f32(j, i);
}

/* Place of element k of the first line, where lines have `length` elements. */
static JitValue line_place(Jit *j, const Columns *s, int64_t length, JitValue k)
{
    JitValue row = jit_tmp(j, jit_muladd_i64(j, s->outer, length, k));
    return jit_tmp(j, jit_muladd_i64(j, row, s->d->shape.inner, s->first));
}

static void clear_lines(Jit *j, const Columns *s)
{
    JitType element = s->d->element_type == DTYPE_I32 ? jit_types(j)->i32 : jit_types(j)->f32;
    JitLoop k = jit_for(j, jit_i64(j, 0), jit_i64(j, s->d->shape.length), 1, "k");
    JitValue start = line_place(j, s, s->d->shape.length, jit_index(&k));
    JitLoop c = jit_for(j, jit_i64(j, 0), s->n, 1, "column");
    jit_store(j, s->to, add(j, start, jit_index(&c)), jit_zero(j, element));
    jit_end_for(j, &c);
    jit_end_for(j, &k);
}

static void add_element(Jit *j, const Columns *s, JitValue at, JitValue column)
{
    const AxisShape *a = &s->d->shape;
    JitValue i = load_index(j, s->d, 0, at);
    JitIf above = jit_if(j, jit_compare(j, JIT_GE, i, jit_i64(j, 0)));
    JitIf below = jit_if(j, jit_compare(j, JIT_LT, i, jit_i64(j, a->length)));
    JitValue to = add(j, line_place(j, s, a->length, i), column);
    JitValue x = jit_load(j, s->from, at);
    jit_store(j, s->to, to, jit_add(j, jit_load(j, s->to, to), x));
    jit_end_if(j, &below);
    jit_end_if(j, &above);
}

static void add_lines(Jit *j, const Columns *s)
{
    JitLoop k = jit_for(j, jit_i64(j, 0), jit_i64(j, s->d->count), 1, "k");
    JitValue start = line_place(j, s, s->d->count, jit_index(&k));
    JitLoop c = jit_for(j, jit_i64(j, 0), s->n, 1, "column");
    add_element(j, s, add(j, start, jit_index(&c)), jit_index(&c));
    jit_end_for(j, &c);
    jit_end_for(j, &k);
}

static int64_t blocks(const GatherDesc *d)
{
    return divide_up(d->shape.inner, COLUMNS);
}

static int64_t scatter_items(const GatherDesc *d)
{
    int64_t n = d->shape.inner < COLUMNS ? d->shape.inner : COLUMNS;
    return items_per_task((d->shape.length + d->count) * n);
}

/* index, src, out */
static void emit_scatter_add(Jit *j, const void *desc)
{
    const GatherDesc *d = desc;
    JitValue first, last;
    Columns s = {.d = d, .from = sums(j, d, 1), .to = sums(j, d, 2)};
    task_items(j, scatter_items(d), d->shape.outer * blocks(d), &first, &last);
    JitLoop item = jit_for(j, first, last, 1, "item");
    JitValue rest = jit_tmp(j, jit_index(&item));
    s.first = mul(j, take_digit(j, &rest, blocks(d)), jit_i64(j, COLUMNS));
    s.outer = rest;
    JitValue left = sub(j, jit_i64(j, d->shape.inner), s.first);
    s.n = jit_tmp(j, jit_min_i64(j, left, jit_i64(j, COLUMNS)));
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
                   divide_up(d.shape.outer * blocks(&d), scatter_items(&d)), bufs, n_bufs);
}
