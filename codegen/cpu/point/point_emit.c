/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The kernel of an element-wise program: rows (all dims but the last) times a vectorised inner dim.
 *
 * What an instruction depends on decides where it is computed: nothing - once per kernel call; the
 * row only - at the row's start; the column only (statistics of channels) - once per kernel call
 * into the scratch memory, when anything is to be computed at all; both - in the inner loop.  The
 * arithmetic is the same everywhere, so none of this shows in the results.  In every vector all
 * loads come before the first store: outputs may lie on inputs. */
#include "codegen/cpu/point/point_depend.h"
#include "codegen/cpu/point/point_jit.h"
#include "codegen/cpu/point/point_shape.h"
#include "codegen/cpu/point/random_words.h"
#include "codegen/cpu/point/relu_mask.h"
#include "codegen/cpu/point/vector_loops.h"

#include "codegen/jit/jit_short.h"
#include "ir/support/bug.h"

#include <string.h>

typedef struct Emit {
    Jit *j;
    const PointProgram *p;
    const PointLoops *loops;
    PointDepend depend;
    JitValue *value;                 /* by instruction */
    DropoutBlocks *kept;             /* by instruction: of dropout along rows */
    JitValue *offset, *store_offset; /* by access, by store: elements, of the row's first column */
} Emit;

/* --- memory --- */

/* Columns [at, at + n) of the row; n NULL: a whole vector. */
typedef struct Span {
    JitValue at, n;
} Span;

JitType point_pointer(Jit *j, DType t)
{
    const JitTypes *types = jit_types(j);
    switch (t) {
    case DTYPE_F32:
        return types->p_f32;
    case DTYPE_I32:
        return types->p_i32;
    case DTYPE_BF16:
        return types->p_bf16;
    case DTYPE_I64:
        return types->p_i64;
    case DTYPE_U8:
    case DTYPE_BOOL:
        return types->p_u8;
    case DTYPE_F16:
    case DTYPE_COUNT:
        break;
    }
    BUG("no code for elements of type %s", dtype_name(t));
}

static JitValue lane_count(Jit *j, Span s)
{
    return s.n ? s.n : jit_i64(j, jit_lanes(j));
}

/* Vectors of neighbours are read and written as they lie. */
static bool by_vectors(DType t)
{
    return t == DTYPE_F32 || t == DTYPE_I32 || t == DTYPE_BF16;
}

/* Scalar element of a buffer as it sits in a lane: bool as 0 / -1. */
static JitValue load_element(Jit *j, const PointAccess *a, JitValue pointer, JitValue index)
{
    JitValue v = jit_load(j, pointer, index);
    if (dtype_is_real(a->dtype))
        return v;
    v = jit_cast(j, v, jit_types(j)->i32);
    return jit_tmp(j, a->dtype == DTYPE_BOOL ? jit_neg(j, v) : v);
}

/* Strided or narrow elements, one by one through the stack. */
static JitValue gather(Jit *j, const PointAccess *a, JitValue pointer, JitValue first,
                       int64_t stride, Span s)
{
    const JitTypes *t = jit_types(j);
    bool real = dtype_is_real(a->dtype);
    JitVar lanes = jit_array_var(j, real ? t->f32 : t->i32, jit_lanes(j), "gather");
    JitValue to = jit_array_ptr(j, lanes, real ? t->p_f32 : t->p_i32);
    if (s.n)
        jit_vstore_aligned(j, to, jit_i64(j, 0), jit_zero(j, real ? t->vf : t->vi));
    JitLoop l = jit_for(j, jit_i64(j, 0), lane_count(j, s), 1, "lane");
    JitValue at = point_walk(j, jit_index(&l), stride, first);
    jit_store(j, to, jit_index(&l), load_element(j, a, pointer, at));
    jit_end_for(j, &l);
    return jit_vload_aligned(j, to, jit_i64(j, 0));
}

static JitValue first_index(Jit *j, JitValue offset, int64_t stride, Span s)
{
    if (!s.at || stride == 0)
        return offset;
    return jit_tmp(j, point_walk(j, s.at, stride, offset));
}

static JitValue load(const Emit *e, const PointInstr *i, Span s)
{
    Jit *j = e->j;
    const PointAccess *a = &e->p->access.data[i->access];
    int64_t stride = a->stride[e->p->rank - 1];
    JitValue pointer = jit_buf(j, a->buf, point_pointer(j, a->dtype));
    JitValue first = first_index(j, e->offset[i->access], stride, s);
    if (stride == 0)
        return jit_tmp(j, jit_splat(j, load_element(j, a, pointer, first)));
    if (stride == 1 && !s.n && point_is_byte(a->dtype))
        return point_load_bytes(j, pointer, first, a->dtype);
    if (stride != 1 || !by_vectors(a->dtype))
        return gather(j, a, pointer, first, stride, s);
    return s.n ? jit_vload_partial(j, pointer, first, s.n, 0) : jit_vload(j, pointer, first);
}

static void scatter(Jit *j, const PointAccess *a, JitValue pointer, JitValue first, JitValue v,
                    Span s)
{
    const JitTypes *t = jit_types(j);
    bool real = dtype_is_real(a->dtype);
    int64_t stride = a->stride[TYPE_MAX_RANK - 1];
    JitVar lanes = jit_array_var(j, real ? t->f32 : t->i32, jit_lanes(j), "scatter");
    JitValue from = jit_array_ptr(j, lanes, real ? t->p_f32 : t->p_i32);
    if (a->dtype == DTYPE_BOOL)
        v = jit_tmp(j, jit_neg(j, v));
    jit_vstore_aligned(j, from, jit_i64(j, 0), v);
    JitLoop l = jit_for(j, jit_i64(j, 0), lane_count(j, s), 1, "lane");
    JitValue at = point_walk(j, jit_index(&l), stride, first);
    JitValue x = jit_load(j, from, jit_index(&l));
    jit_store(j, pointer, at, point_is_byte(a->dtype) ? jit_cast(j, x, t->u8) : x);
    jit_end_for(j, &l);
}

static void store(const Emit *e, size_t k, Span s)
{
    Jit *j = e->j;
    const PointStore *st = &e->p->store.data[k];
    PointAccess a = st->at;
    int64_t stride = a.stride[e->p->rank - 1];
    JitValue pointer = jit_buf(j, a.buf, point_pointer(j, a.dtype)), v = e->value[st->reg];
    JitValue first = first_index(j, e->store_offset[k], stride, s);
    if (stride != 1 || !by_vectors(a.dtype)) {
        a.stride[TYPE_MAX_RANK - 1] = stride;
        scatter(j, &a, pointer, first, v, s);
    } else if (s.n) {
        jit_vstore_partial(j, pointer, first, s.n, v);
    } else {
        jit_vstore(j, pointer, first, v);
    }
}

JitValue point_place_word(Jit *j, JitValue at, bool counts, bool high)
{
    return point_place_word_at(j, at, counts ? jit_lane_numbers(j) : NULL, high);
}

JitValue point_place_word_at(Jit *j, JitValue at, JitValue lane, bool high)
{
    const JitTypes *t = jit_types(j);
    JitValue low = jit_tmp(j, jit_splat(j, jit_cast(j, at, t->i32)));
    JitValue lanes = lane ? jit_tmp(j, jit_add(j, low, lane)) : low;
    if (!high)
        return lanes;
    JitValue top = jit_vi(j, INT32_MIN),
             upper = jit_cast(j, jit_shr(j, at, jit_i64(j, 32)), t->i32);
    JitValue carry =
        jit_vmask(j, JIT_LT, jit_tmp(j, jit_xor(j, lanes, top)), jit_tmp(j, jit_xor(j, low, top)));
    return jit_tmp(j, jit_sub(j, jit_splat(j, upper), carry));
}

static JitValue coordinate(const Emit *e, const PointInstr *i, Span s)
{
    const PointAccess *a = &e->p->access.data[i->access];
    int64_t stride = a->stride[e->p->rank - 1];
    if (stride != 0 && stride != 1)
        BUG("lanes of a coordinate are apart");
    JitValue at = jit_tmp(e->j, first_index(e->j, e->offset[i->access], stride, s));
    return point_place_word(e->j, at, stride == 1, i->op == POINT_COORDINATE_HIGH);
}

static JitValue bits(const Emit *e, const PointInstr *i, Span s)
{
    const PointAccess *a = &e->p->access.data[i->access];
    JitValue words = jit_buf(e->j, a->buf, jit_types(e->j)->p_i32);
    int64_t stride = a->stride[e->p->rank - 1];
    JitValue at = first_index(e->j, e->offset[i->access], stride, s);
    if (stride != 0 && stride != 1)
        BUG("bits of elements are apart");
    return stride ? relu_mask_lanes(e->j, words, at, s.n) : relu_mask_one(e->j, words, at);
}

/* --- dropout --- */

static const PointAccess *number_access(const Emit *e, const PointInstr *i)
{
    return &e->p->access.data[e->p->instr.data[i->in[i->n_in - 1]].access];
}

/* Dropout whose elements have numbers that count along a row. */
static bool along_rows(const Emit *e, const PointInstr *i)
{
    return i->op == OP_dropout && number_access(e, i)->stride[e->p->rank - 1] == 1;
}

static JitValue dropout_of_row(const Emit *e, size_t k, const JitValue *in, Span s)
{
    const PointInstr *i = &e->p->instr.data[k];
    JitValue at = first_index(e->j, e->offset[number_access(e, i) - e->p->access.data], 1, s);
    return dropout_apply(e->j, dropout_blocks_kept(e->j, &e->kept[k], in + 1, at, i->a), in[0],
                         i->a);
}

/* --- instructions --- */

static JitValue column_slot(const Emit *e, int reg, JitValue column, JitValue *pointer)
{
    *pointer = jit_scratch(e->j, jit_types(e->j)->p_f32);
    return point_walk(e->j, jit_i64(e->j, e->depend.slot[reg] - 1), e->loops->columns, column);
}

static void compute(Emit *e, size_t k, Span s)
{
    const PointInstr *i = &e->p->instr.data[k];
    JitValue in[POINT_MAX_IN];
    if (i->op == POINT_LOAD) {
        e->value[k] = load(e, i, s);
    } else if (i->op == POINT_NUMBER) {
        e->value[k] = point_number_lanes(e->j, i->dtype, e->p->n_bufs + i->k);
    } else if (i->op == POINT_BIT) {
        e->value[k] = bits(e, i, s);
    } else if (point_has_access(i)) {
        e->value[k] = coordinate(e, i, s);
    } else {
        for (int n = 0; n < i->n_in; n++)
            in[n] = e->value[i->in[n]];
        e->value[k] = along_rows(e, i) ? dropout_of_row(e, k, in, s) : point_apply(e->j, i, in);
    }
}

static void compute_all(Emit *e, unsigned char on)
{
    Span none = {0};
    for (size_t k = 0; k < e->p->instr.len; k++)
        if (e->depend.on[k] == on)
            compute(e, k, none);
}

static void inner_vector(Emit *e, Span s)
{
    JitValue pointer;
    for (size_t k = 0; k < e->p->instr.len; k++) {
        if (!e->depend.needed[k])
            continue;
        if (e->depend.slot[k]) {
            JitValue at = column_slot(e, (int)k, s.at, &pointer);
            e->value[k] =
                s.n ? jit_vload_partial(e->j, pointer, at, s.n, 0) : jit_vload(e->j, pointer, at);
        } else {
            compute(e, k, s);
        }
    }
    for (size_t k = 0; k < e->p->store.len; k++)
        store(e, k, s);
}

/* Column values into scratch. */
static void hoisted_vector(Emit *e, Span s)
{
    JitValue pointer;
    for (size_t k = 0; k < e->p->instr.len; k++)
        if (e->depend.on[k] == ON_COLUMN)
            compute(e, k, s);
    for (size_t k = 0; k < e->p->instr.len; k++) {
        if (!e->depend.slot[k])
            continue;
        JitValue at = column_slot(e, (int)k, s.at, &pointer);
        if (s.n)
            jit_vstore_partial(e->j, pointer, at, s.n, e->value[k]);
        else
            jit_vstore(e->j, pointer, at, e->value[k]);
    }
}

/* --- loops --- */

typedef void VectorBody(Emit *e, Span s);

/* Columns [from, to) of the current row; to is either a multiple of the lanes or the last column.
 */
static void vector_loop(Emit *e, JitValue from, JitValue to, VectorBody *body)
{
    Jit *j = e->j;
    int lanes = jit_lanes(j);
    JitValue tail = from;
    if (e->loops->has_vector) {
        JitValue stop = jit_sub(j, to, jit_i64(j, lanes - 1));
        JitLoop l = jit_for(j, from, stop, lanes, "c");
        body(e, (Span){jit_index(&l), NULL});
        jit_end_for(j, &l);
        tail = jit_index(&l);
    }
    if (!e->loops->has_rest)
        return;
    JitIf rest = jit_if(j, jit_compare(j, JIT_LT, tail, to));
    body(e, (Span){tail, jit_tmp(j, jit_sub(j, to, tail))});
    jit_end_if(j, &rest);
}

static JitValue row_offset(const Emit *e, const PointAccess *a, const JitValue *index)
{
    JitValue at = jit_i64(e->j, a->base);
    for (int d = 0; d < e->p->rank - 1; d++)
        if (index && a->stride[d])
            at = point_walk(e->j, index[d], a->stride[d], at);
    return jit_tmp(e->j, at);
}

/* index NULL: accesses that do not depend on the row, and all of them when there is one row. */
static void set_offsets(Emit *e, const JitValue *index)
{
    for (size_t k = 0; k < e->p->access.len; k++)
        e->offset[k] = row_offset(e, &e->p->access.data[k], index);
    for (size_t k = 0; k < e->p->store.len; k++)
        e->store_offset[k] = row_offset(e, &e->p->store.data[k].at, index);
}

/* --- rows --- */

/* Those of rows one behind another have the stride of columns. */
static bool rows_apart(const Emit *e, const PointAccess *a)
{
    int64_t row = a->stride[e->p->rank - 2], column = a->stride[e->p->rank - 1];
    return a->buf >= 0 && by_vectors(a->dtype) && column == 1 && row > 1 &&
           row != e->loops->columns;
}

/* Asks for what is read of rows that lie apart, some rows ahead. */
static void inner_vector_of_rows(Emit *e, Span s)
{
    Jit *j = e->j;
    for (size_t k = 0; k < e->p->access.len; k++) {
        const PointAccess *a = &e->p->access.data[k];
        if (!rows_apart(e, a))
            continue;
        JitValue rows = jit_i64(j, AHEAD_ROWS), row = e->offset[k];
        JitValue at = add(j, s.at, point_walk(j, rows, a->stride[e->p->rank - 2], row));
        JitValue pointer = jit_buf(j, a->buf, point_pointer(j, a->dtype));
        jit_prefetch_line(j, jit_offset(j, pointer, at), false);
    }
    inner_vector(e, s);
}

/* A row's place in each outer dim. */
static void start_row(Emit *e, const JitValue *index)
{
    set_offsets(e, index);
    compute_all(e, ON_ROW);
}

static void place_of_row(const Emit *e, JitValue row, JitValue *index)
{
    Jit *j = e->j;
    JitValue rest = row;
    for (int d = e->p->rank - 2; d > 0; d--) {
        JitValue size = point_size(j, e->p->dim[d]);
        index[d] = jit_tmp(j, jit_mod(j, rest, size));
        rest = divide(j, rest, size);
    }
    index[0] = rest;
}

/* The place of the next row, without a division. */
static void next_place(const Emit *e, JitVar *place, int d)
{
    Jit *j = e->j;
    jit_set(j, place[d], jit_add(j, jit_get(place[d]), jit_i64(j, 1)));
    if (d == 0)
        return;
    JitIf ends = jit_if(j, jit_compare(j, JIT_EQ, jit_get(place[d]), point_size(j, e->p->dim[d])));
    jit_set(j, place[d], jit_i64(j, 0));
    next_place(e, place, d - 1);
    jit_end_if(j, &ends);
}

static JitValue task_limit(Jit *j, JitValue task, JitValue size, JitValue total)
{
    return jit_tmp(j, jit_min_i64(j, mul(j, task, size), total));
}

static JitValue columns(const Emit *e)
{
    return point_size(e->j, e->loops->columns);
}

static void one_row(Emit *e)
{
    Jit *j = e->j;
    JitValue size = jit_i64(j, POINT_TASK_ELEMENTS), from = mul(j, jit_task_begin(j), size);
    vector_loop(e, from, task_limit(j, jit_task_end(j), size, columns(e)), inner_vector);
}

static void whole_rows(Emit *e)
{
    Jit *j = e->j;
    int last = e->p->rank - 2;
    JitValue size = point_size(j, e->loops->rows_a_task), index[TYPE_MAX_RANK];
    JitVar place[TYPE_MAX_RANK];
    JitValue from = mul(j, jit_task_begin(j), size);
    place_of_row(e, from, index);
    for (int d = 0; d <= last; d++) {
        place[d] = jit_var(j, jit_types(j)->i64, "place");
        jit_set(j, place[d], index[d]);
    }
    JitValue to = task_limit(j, jit_task_end(j), size, point_size(j, e->loops->rows));
    JitLoop rows = jit_for(j, from, to, 1, "row");
    for (int d = 0; d <= last; d++)
        index[d] = jit_tmp(j, jit_get(place[d]));
    start_row(e, index);
    vector_loop(e, jit_i64(j, 0), columns(e), inner_vector_of_rows);
    next_place(e, place, last);
    jit_end_for(j, &rows);
}

static void parts_of_rows(Emit *e)
{
    Jit *j = e->j;
    JitValue parts = point_size(j, e->loops->parts), size = jit_i64(j, POINT_TASK_ELEMENTS);
    JitValue index[TYPE_MAX_RANK];
    JitLoop task = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "task");
    place_of_row(e, divide(j, jit_index(&task), parts), index);
    start_row(e, index);
    JitValue part = jit_tmp(j, jit_mod(j, jit_index(&task), parts)), from = mul(j, part, size);
    JitValue next = add(j, part, jit_i64(j, 1));
    vector_loop(e, from, task_limit(j, next, size, columns(e)), inner_vector);
    jit_end_for(j, &task);
}

static void analyse(Emit *e, Pool *pool)
{
    size_t n = e->p->instr.len;
    e->depend = point_depend(pool, e->p, e->loops->hoisted);
    e->value = POOL_ARRAY(pool, n, JitValue);
    e->offset = POOL_ARRAY(pool, e->p->access.len, JitValue);
    e->store_offset = POOL_ARRAY(pool, e->p->store.len, JitValue);
    e->kept = POOL_ARRAY(pool, n, DropoutBlocks);
    for (size_t k = 0; k < n; k++)
        if (along_rows(e, &e->p->instr.data[k]))
            e->kept[k] = dropout_blocks(e->j);
}

/* desc: a PointShape. */
static void emit(Jit *j, const void *desc)
{
    Pool *pool = pool_new();
    if (!pool)
        BUG("out of memory");
    const PointShape *shape = desc;
    Emit e = {.j = j, .p = &shape->program, .loops = &shape->loops};
    analyse(&e, pool);
    set_offsets(&e, NULL);
    compute_all(&e, 0);
    if (e.depend.n_slots)
        vector_loop(&e, jit_i64(j, 0), columns(&e), hoisted_vector);
    if (e.loops->tasks == POINT_ONE_ROW)
        one_row(&e);
    else if (e.loops->tasks == POINT_WHOLE_ROWS)
        whole_rows(&e);
    else
        parts_of_rows(&e);
    pool_free(pool);
}

void point_emit_call(const Lowering *l, CallDraft *call, const PointProgram *p)
{
    call->desc = point_shape(call, p, l->target->vector_floats);
    call->emit = emit;
}
