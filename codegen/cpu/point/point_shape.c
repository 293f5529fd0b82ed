/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/point/point_shape.h"

#include "ir/support/divide.h"
#include "ir/support/strbuf.h"

enum { SPANS_MOST = 256, TASK_ELEMENTS = POINT_TASK_ELEMENTS, HOIST_BYTES = SCRIMP_WORK_BYTES / 2 };

/* FIRST_NUMBER + i: argument i of the call.  No tensor has sizes that large. */
static const int64_t FIRST_NUMBER = INT64_MAX - CALL_MAX_BUFS;

typedef struct Sizes {
    CallDraft *call;
    int first; /* of the numbers that are sizes and strides of rows */
} Sizes;

JitValue point_size(Jit *j, int64_t size)
{
    return size >= FIRST_NUMBER ? jit_number(j, (int)(size - FIRST_NUMBER)) : jit_i64(j, size);
}

JitValue point_walk(Jit *j, JitValue at, int64_t stride, JitValue from)
{
    if (stride < FIRST_NUMBER)
        return jit_muladd_i64(j, at, stride, from);
    return jit_add(j, from, jit_mul(j, at, point_size(j, stride)));
}

/* Where the arguments of a call run out, a size stays in the code. */
static int64_t add_number(CallDraft *call, int64_t value)
{
    if (call->n_bufs == CALL_MAX_BUFS)
        return value;
    call->buf[call->n_bufs] = (CallBuf){CALL_NUMBER, value};
    return FIRST_NUMBER + call->n_bufs++;
}

/* Equal strides are one number: buffers of one layout are walked by one index. */
static int64_t stride_number(Sizes *s, int64_t stride)
{
    if (stride == 0 || stride == 1)
        return stride;
    for (int i = s->first; i < s->call->n_bufs; i++)
        if (s->call->buf[i].value == CALL_NUMBER && s->call->buf[i].offset == stride)
            return FIRST_NUMBER + i;
    return add_number(s->call, stride);
}

static void shape_access(Sizes *s, PointAccess *a, int rank)
{
    for (int d = 0; d < rank; d++)
        a->stride[d] = stride_number(s, a->stride[d]);
}

static void shape_constant(CallDraft *call, PointInstr *i, int n_bufs)
{
    if (i->op != OP_const || call->n_bufs == CALL_MAX_BUFS)
        return;
    int64_t at = add_number(call, (uint32_t)point_word(i->dtype, i->a)) - FIRST_NUMBER;
    *i = (PointInstr){.op = POINT_NUMBER, .dtype = i->dtype, .k = (int)at - n_bufs};
}

/* Rows of one task; 0: rows are split into parts of TASK_ELEMENTS columns. */
static int64_t rows_per_task(int64_t columns)
{
    if (columns > 2 * TASK_ELEMENTS)
        return 0;
    return columns >= TASK_ELEMENTS ? 1 : TASK_ELEMENTS / columns;
}

static int64_t hoisted_values(const PointProgram *p, int64_t rows, int64_t columns)
{
    int64_t fit = HOIST_BYTES / 4 / columns, n = (int64_t)p->instr.len;
    return rows < 4 ? 0 : fit < n ? fit : n;
}

static PointLoops shape_loops(CallDraft *call, const PointProgram *p, int lanes)
{
    int64_t rows = 1, columns = p->dim[p->rank - 1];
    for (int d = 0; d < p->rank - 1; d++)
        rows *= p->dim[d];
    int64_t per = rows_per_task(columns), parts = divide_up(columns, TASK_ELEMENTS);
    PointLoops l = {.tasks = rows == 1 ? POINT_ONE_ROW
                             : per     ? POINT_WHOLE_ROWS
                                       : POINT_PARTS_OF_ROWS,
                    .has_vector = columns >= lanes,
                    .has_rest = columns % lanes != 0,
                    .hoisted = hoisted_values(p, rows, columns)};
    call->n_tasks = l.tasks == POINT_WHOLE_ROWS ? divide_up(rows, per) : rows * parts;
    if (l.tasks == POINT_WHOLE_ROWS) {
        l.rows = add_number(call, rows);
        l.rows_a_task = add_number(call, per);
    } else if (l.tasks == POINT_PARTS_OF_ROWS) {
        l.parts = add_number(call, parts);
    }
    l.columns = add_number(call, columns);
    return l;
}

/* Elements of a space of rows before a task. */
static int64_t elements_before(const PointLoops *l, int64_t task, int64_t rows, int64_t columns)
{
    int64_t per = rows_per_task(columns), parts = divide_up(columns, TASK_ELEMENTS);
    int64_t row = l->tasks == POINT_WHOLE_ROWS ? task * per : task / parts;
    int64_t column = l->tasks == POINT_WHOLE_ROWS ? 0 : task % parts * TASK_ELEMENTS;
    int64_t at = row * columns + column;
    return at < rows * columns ? at : rows * columns;
}

/* One behind another, in the order of the space. */
static bool is_dense(const PointProgram *p, const PointAccess *a)
{
    int64_t stride = 1;
    bool dense = a->base == 0;
    for (int d = p->rank - 1; d >= 0; d--) {
        dense = dense && a->stride[d] == stride;
        stride *= p->dim[d];
    }
    return dense;
}

/* Of the only result. */
static void note_spans(CallDraft *call, const PointProgram *p, const PointLoops *l)
{
    int64_t columns = p->dim[p->rank - 1], rows = 1;
    for (int d = 0; d < p->rank - 1; d++)
        rows *= p->dim[d];
    if (p->store.len != 1 || !is_dense(p, &p->store.data[0].at))
        return;
    int64_t each = divide_up(call->n_tasks, SPANS_MOST), n = divide_up(call->n_tasks, each);
    TaskSpans *s = task_spans_new(p->pool, n, each);
    s->task[n] = call->n_tasks;
    for (int64_t i = 0; i < n; i++) {
        s->from[i] = elements_before(l, s->task[i], rows, columns);
        s->to[i] = elements_before(l, s->task[i + 1], rows, columns);
    }
    call->writes = (CallSpans){s, {p->store.data[0].at.buf}, 1};
}

static PointProgram copy_program(const PointProgram *p)
{
    PointProgram copy = *p;
    copy.instr.data = POOL_ARRAY(p->pool, p->instr.len + 1, PointInstr);
    copy.access.data = POOL_ARRAY(p->pool, p->access.len + 1, PointAccess);
    copy.store.data = POOL_ARRAY(p->pool, p->store.len + 1, PointStore);
    for (size_t i = 0; i < p->instr.len; i++)
        copy.instr.data[i] = p->instr.data[i];
    for (size_t i = 0; i < p->access.len; i++)
        copy.access.data[i] = p->access.data[i];
    for (size_t i = 0; i < p->store.len; i++)
        copy.store.data[i] = p->store.data[i];
    return copy;
}

const PointShape *point_shape(CallDraft *call, const PointProgram *p, int lanes)
{
    PointShape *shape = POOL_NEW(p->pool, PointShape);
    PointProgram *q = &shape->program;
    *q = copy_program(p);
    shape->loops = shape_loops(call, p, lanes);
    note_spans(call, p, &shape->loops);
    Sizes sizes = {call, call->n_bufs - 1}; /* columns are the last of the loops' numbers */
    for (size_t i = 0; i < q->access.len; i++)
        shape_access(&sizes, &q->access.data[i], q->rank);
    for (size_t i = 0; i < q->store.len; i++)
        shape_access(&sizes, &q->store.data[i].at, q->rank);
    for (int d = 0; d < q->rank; d++) /* those of the first and the last dim are not looked at */
        q->dim[d] = d > 0 && d < q->rank - 1 ? add_number(call, q->dim[d]) : 0;
    for (size_t i = 0; i < q->instr.len; i++)
        shape_constant(call, &q->instr.data[i], p->n_bufs);
    StrBuf key = strbuf_new(p->pool);
    strbuf_printf(&key, "%s ", point_key(q));
    desc_key(&key, "loops", &shape->loops, DESC_BYTES(PointLoops));
    call->key = key.text;
    return shape;
}
