/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Building element-wise programs, their canonical form, and the call that runs one. */
#include "codegen/forms/point.h"

#include "ir/strided_view.h"
#include "ir/support/bug.h"
#include "ir/support/strbuf.h"

#include <inttypes.h>
#include <string.h>

PointProgram *point_program(Pool *pool, const Type *space)
{
    PointProgram *p = POOL_NEW(pool, PointProgram);
    p->pool = pool;
    p->rank = space->rank;
    for (int i = 0; i < space->rank; i++)
        p->dim[i] = space->dim[i];
    return p;
}

/* Numpy's rule: dims are aligned at the last, dims of size 1 repeat. */
static PointAccess strided_access(const PointProgram *p, int buf, const Type *type, int axis,
                                  const int64_t *stride)
{
    PointAccess a = {.buf = buf, .dtype = type->dtype};
    if (axis >= 0)
        a.stride[axis] = stride[0];
    for (int i = 0; i < type->rank && axis < 0; i++) {
        int d = p->rank - type->rank + i;
        if (d >= 0)
            a.stride[d] = type->dim[i] == 1 ? 0 : stride[i];
    }
    return a;
}

PointAccess point_access(const PointProgram *p, int buf, const Type *type, int axis)
{
    int64_t stride[TYPE_MAX_RANK] = {1}, step = 1;
    for (int i = type->rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= type->dim[i];
    }
    return strided_access(p, buf, type, axis, stride);
}

PointAccess point_access_value(const PointProgram *p, int buf, const Graph *g, ValueId v, int axis)
{
    StridedView view = value_view(g, v);
    return strided_access(p, buf, value_type(g, v), axis, view.stride);
}

CallBuf point_buf(const Graph *g, ValueId v)
{
    int64_t bytes = (int64_t)dtype_bytes(value_type(g, v)->dtype);
    return (CallBuf){v, value_view(g, v).base * bytes};
}

int point_push(PointProgram *p, PointInstr instr)
{
    vec_push(p->pool, &p->instr, instr);
    return (int)p->instr.len - 1;
}

static int add_access(PointProgram *p, PointAccess a)
{
    vec_push(p->pool, &p->access, a);
    return (int)p->access.len - 1;
}

int point_load(PointProgram *p, PointAccess access)
{
    PointInstr i = {
        .op = POINT_LOAD, .dtype = point_lane_type(access.dtype), .access = add_access(p, access)};
    return point_push(p, i);
}

int point_coordinate(PointProgram *p, PointAccess place, bool high)
{
    place.buf = -1;
    place.dtype = DTYPE_I32;
    PointInstr i = {.op = high ? POINT_COORDINATE_HIGH : POINT_COORDINATE,
                    .dtype = DTYPE_I32,
                    .access = add_access(p, place)};
    return point_push(p, i);
}

int point_const(PointProgram *p, DType dtype, double value)
{
    PointInstr i = {.op = OP_const, .dtype = point_lane_type(dtype), .a = value};
    return point_push(p, i);
}

static DType dtype_of(const PointProgram *p, int reg)
{
    return p->instr.data[reg].dtype;
}

static int add_number(PointProgram *p, DType dtype, int32_t word)
{
    vec_push(p->pool, &p->number, (uint32_t)word);
    PointInstr i = {.op = POINT_NUMBER, .dtype = dtype, .k = (int)p->number.len - 1};
    return point_push(p, i);
}

/* The nearest bf16, ties to even; NaN stays NaN. */
static uint32_t round_bits(uint32_t bits)
{
    bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    uint32_t near = bits + 0x7fffu + (bits >> 16 & 1u);
    return (nan ? bits | 0x400000u : near) & 0xffff0000u;
}

int32_t point_word(DType dtype, double value)
{
    float f = (float)value;
    uint32_t word;
    memcpy(&word, &f, sizeof word);
    if (dtype == DTYPE_BF16)
        word = round_bits(word);
    int32_t bits;
    memcpy(&bits, &word, sizeof bits);
    return dtype_is_real(dtype) ? bits : dtype == DTYPE_BOOL ? -(value != 0) : (int32_t)value;
}

int point_number(PointProgram *p, DType dtype, double value)
{
    return add_number(p, point_lane_type(dtype), point_word(dtype, value));
}

int point_unary(PointProgram *p, OpKind op, int a)
{
    DType t = dtype_of(p, a);
    PointInstr i = {.op = op, .dtype = t, .from = t, .n_in = 1, .in = {a}};
    return point_push(p, i);
}

int point_binary(PointProgram *p, OpKind op, int a, int b)
{
    DType t = dtype_of(p, a);
    PointInstr i = {.op = op, .dtype = t, .from = t, .n_in = 2, .in = {a, b}};
    return point_push(p, i);
}

int point_round(PointProgram *p, int reg, DType t)
{
    PointInstr i = {
        .op = POINT_ROUND, .dtype = DTYPE_F32, .from = DTYPE_F32, .n_in = 1, .in = {reg}};
    return t == DTYPE_BF16 ? point_push(p, i) : reg;
}

/* What is rounded already is stored as it was before: the store rounds. */
void point_store(PointProgram *p, int reg, PointAccess at)
{
    const PointInstr *i = &p->instr.data[reg];
    bool rounds = at.dtype == DTYPE_BF16 && i->op == POINT_ROUND;
    PointStore s = {.reg = rounds ? i->in[0] : reg, .at = at};
    vec_push(p->pool, &p->store, s);
}

/* --- canonical form --- */

static bool walks_as_one(const PointAccess *a, int d, int64_t inner_dim)
{
    return a->stride[d] == a->stride[d + 1] * inner_dim;
}

static bool may_merge(const PointProgram *p, int d)
{
    for (size_t i = 0; i < p->access.len; i++)
        if (!walks_as_one(&p->access.data[i], d, p->dim[d + 1]))
            return false;
    for (size_t i = 0; i < p->store.len; i++)
        if (!walks_as_one(&p->store.data[i].at, d, p->dim[d + 1]))
            return false;
    return true;
}

static void drop_stride(PointAccess *a, int d, int rank)
{
    for (int i = d; i + 1 < rank; i++)
        a->stride[i] = a->stride[i + 1];
    a->stride[rank - 1] = 0;
}

static void drop_dim(PointProgram *p, int d)
{
    for (size_t i = 0; i < p->access.len; i++)
        drop_stride(&p->access.data[i], d, p->rank);
    for (size_t i = 0; i < p->store.len; i++)
        drop_stride(&p->store.data[i].at, d, p->rank);
    for (int i = d; i + 1 < p->rank; i++)
        p->dim[i] = p->dim[i + 1];
    p->rank--;
}

void point_collapse(PointProgram *p)
{
    for (int d = p->rank - 1; d >= 0; d--)
        if (p->dim[d] == 1)
            drop_dim(p, d);
    for (int d = p->rank - 2; d >= 0; d--)
        if (may_merge(p, d)) {
            p->dim[d + 1] *= p->dim[d];
            drop_dim(p, d);
        }
    if (p->rank == 0) {
        p->dim[0] = 1;
        p->rank = 1;
    }
}

/* The next access of a buffer's elements behind number *at, which it moves on; NULL: no more. */
static PointAccess *next_access(PointProgram *p, int buf, size_t *at)
{
    while (*at < p->access.len + p->store.len) {
        size_t k = (*at)++;
        PointAccess *a =
            k < p->access.len ? &p->access.data[k] : &p->store.data[k - p->access.len].at;
        if (a->buf == buf)
            return a;
    }
    return NULL;
}

static bool reads_bits(const PointProgram *p, int buf)
{
    for (size_t k = 0; k < p->instr.len; k++)
        if (p->instr.data[k].op == POINT_BIT && p->access.data[p->instr.data[k].access].buf == buf)
            return true;
    return false;
}

int64_t point_move_base(PointProgram *p, int buf)
{
    int64_t least = INT64_MAX;
    DType dtype = DTYPE_U8;
    PointAccess *a;
    for (size_t at = 0; (a = next_access(p, buf, &at)); dtype = a->dtype)
        least = a->base < least ? a->base : least;
    if (least == INT64_MAX || reads_bits(p, buf))
        return 0;
    for (size_t at = 0; (a = next_access(p, buf, &at));)
        a->base -= least;
    return least * (int64_t)dtype_bytes(dtype);
}

/* What no instruction or store says: the space and the buffers. */
const char *point_key(const PointProgram *p)
{
    StrBuf key = strbuf_new(p->pool);
    strbuf_printf(&key, "point %d ", p->n_bufs);
    desc_key(&key, "dims", p->dim, (size_t)p->rank * sizeof *p->dim);
    desc_key(&key, " code", p->instr.data, p->instr.len * DESC_BYTES(PointInstr));
    desc_key(&key, " access", p->access.data, p->access.len * sizeof *p->access.data);
    desc_key(&key, " store", p->store.data, p->store.len * DESC_BYTES(PointStore));
    return key.text;
}

/* --- the call --- */

static void add_buffers(PointProgram *p, CallDraft *call, const CallBuf *bufs, int n_bufs)
{
    if (n_bufs + (int)p->number.len > CALL_MAX_BUFS)
        BUG("%s takes %d buffers and %d numbers", call->label, n_bufs, (int)p->number.len);
    memcpy(call->buf, bufs, (size_t)n_bufs * sizeof *bufs);
    for (int i = 0; i < n_bufs; i++)
        call->buf[i].offset += point_move_base(p, i);
    call->n_bufs = p->n_bufs = n_bufs;
    for (size_t i = 0; i < p->number.len; i++)
        call->buf[call->n_bufs++] = (CallBuf){CALL_NUMBER, p->number.data[i]};
}

void point_call(Lowering *l, PointProgram *p, const char *label, const CallBuf *bufs, int n_bufs,
                double flops)
{
    for (int d = 0; d < p->rank; d++)
        if (p->dim[d] == 0)
            return;
    point_collapse(p);
    CallDraft call = {.label = label, .desc = p};
    add_buffers(p, &call, bufs, n_bufs);
    call.key = point_key(p);
    l->backend->point(l, &call, p);
    const Node *node = graph_node(l->graph, l->node);
    call.flops = flops;
    call.bytes = (double)node_bytes_moved(l->graph, node);
    lower_call(l, call);
}
