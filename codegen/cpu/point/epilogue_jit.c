/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/point/epilogue_jit.h"

#include "codegen/cpu/point/point_jit.h"
#include "codegen/cpu/point/relu_mask.h"
#include "ir/support/bug.h"

enum { LINE_BYTES = 64 };

/* One vector of elements being finished. */
typedef struct EpilogueEmit {
    Jit *j;
    const Epilogue *e;
    JitValue acc, row, col, n_valid;
} EpilogueEmit;

/* Element strides of an operand over the result's dims, as numpy aligns it or along one axis. */
static void operand_strides(const Epilogue *e, const Type *t, int axis, int64_t pitch,
                            int64_t *stride)
{
    for (int d = 0; d < e->out.rank; d++)
        stride[d] = d == axis;
    if (axis >= 0)
        return;
    int64_t step = 1;
    for (int d = t->rank - 1; d >= 0; d--) {
        stride[e->out.rank - t->rank + d] = t->dim[d] == 1 ? 0 : step;
        step = pitch && d == t->rank - 1 ? pitch : step * t->dim[d];
    }
}

/* row's digits times strides; runs of dims that lie evenly are one digit. */
static JitValue row_offset(EpilogueEmit *m, const int64_t *stride)
{
    Jit *j = m->j;
    const Type *out = &m->e->out;
    JitValue sum = jit_i64(j, 0), rest = m->row;
    for (int d = out->rank - 2; d >= 0;) {
        int64_t size = out->dim[d], step = stride[d];
        for (d--; d >= 0 && (stride[d] == step * size || out->dim[d] == 1); d--)
            size *= out->dim[d];
        if (step) {
            JitValue digit = d >= 0 ? jit_mod(j, rest, jit_i64(j, size)) : rest;
            sum = jit_muladd_i64(j, digit, step, sum);
        }
        if (d >= 0)
            rest = jit_div(j, rest, jit_i64(j, size));
    }
    return sum;
}

/* The first bytes become lanes of 0 / value, or 0 / -1 for bool; one by one. */
static JitValue load_bytes(EpilogueEmit *m, int buf, JitValue at, DType dtype)
{
    Jit *j = m->j;
    const JitTypes *t = jit_types(j);
    JitVar lanes = jit_var(j, t->vi, "bytes");
    jit_set(j, lanes, jit_zero(j, t->vi));
    JitValue to = jit_array_ptr(j, lanes, t->p_i32), from = jit_buf(j, buf, t->p_u8);
    JitValue first = jit_tmp(j, at);
    JitLoop l = jit_for(j, jit_i64(j, 0), m->n_valid, 1, "i");
    JitValue x = jit_load(j, from, jit_add(j, first, jit_index(&l)));
    x = jit_cast(j, x, t->i32);
    jit_store(j, to, jit_index(&l), dtype == DTYPE_BOOL ? jit_neg(j, x) : x);
    jit_end_for(j, &l);
    return jit_get(lanes);
}

static JitValue load_one(EpilogueEmit *m, int buf, JitValue at, DType dtype)
{
    Jit *j = m->j;
    const JitTypes *t = jit_types(j);
    if (!point_is_byte(dtype))
        return jit_tmp(j, jit_splat(j, jit_load(j, jit_buf(j, buf, point_pointer(j, dtype)), at)));
    JitValue x = jit_cast(j, jit_load(j, jit_buf(j, buf, t->p_u8), at), t->i32);
    return jit_tmp(j, jit_splat(j, dtype == DTYPE_BOOL ? jit_neg(j, x) : x));
}

static JitValue load_row(EpilogueEmit *m, int buf, JitValue at, DType dtype)
{
    Jit *j = m->j;
    if (point_is_byte(dtype))
        return m->n_valid ? load_bytes(m, buf, at, dtype)
                          : point_load_bytes(j, jit_buf(j, buf, jit_types(j)->p_u8), at, dtype);
    JitValue p = jit_buf(j, buf, point_pointer(j, dtype));
    return m->n_valid ? jit_vload_partial(j, p, at, m->n_valid, 0) : jit_vload(j, p, at);
}

static const EpilogueInput *operand(const EpilogueEmit *m, ValueId v)
{
    for (int i = 0; i < m->e->n_inputs; i++)
        if (m->e->input[i].value == v)
            return &m->e->input[i];
    BUG("an epilogue reads a value that is no operand");
}

static JitValue operand_value(void *user, ValueId v, int axis)
{
    EpilogueEmit *m = user;
    if (v == m->e->acc)
        return m->acc;
    const EpilogueInput *in = operand(m, v);
    int buf = in->buf;
    if (value_node(m->e->body, v)->op == OP_const)
        return point_number_lanes(m->j, value_type(m->e->body, v)->dtype, buf);
    int64_t stride[TYPE_MAX_RANK];
    const Type *t = value_type(m->e->body, v);
    operand_strides(m->e, t, axis, in->pitch, stride);
    JitValue at = row_offset(m, stride);
    return stride[m->e->out.rank - 1] ? load_row(m, buf, jit_add(m->j, at, m->col), t->dtype)
                                      : load_one(m, buf, at, t->dtype);
}

static int64_t columns(const Epilogue *e)
{
    return e->out.dim[e->out.rank - 1];
}

static JitValue linear_index(void *user)
{
    EpilogueEmit *m = user;
    return jit_tmp(m->j, jit_muladd_i64(m->j, m->row, columns(m->e), m->col));
}

static JitValue row_in_matrix(void *user)
{
    EpilogueEmit *m = user;
    return jit_tmp(m->j, jit_mod(m->j, m->row, jit_i64(m->j, m->e->out.dim[m->e->out.rank - 2])));
}

static JitValue column_index(void *user)
{
    return ((EpilogueEmit *)user)->col;
}

/* An operand of i32 words. */
static JitValue operand_words(const EpilogueEmit *m, ValueId v)
{
    return jit_buf(m->j, operand(m, v)->buf, jit_types(m->j)->p_i32);
}

static JitValue operand_word(void *user, ValueId v, int i)
{
    EpilogueEmit *m = user;
    return jit_load(m->j, operand_words(m, v), jit_i64(m->j, i));
}

static JitValue operand_bits(void *user, ValueId v)
{
    EpilogueEmit *m = user;
    return relu_mask_lanes(m->j, operand_words(m, v), linear_index(m), m->n_valid);
}

static void store_bytes(EpilogueEmit *m, int out_buf, JitValue at, JitValue x, DType dtype)
{
    Jit *j = m->j;
    const JitTypes *t = jit_types(j);
    JitVar lanes = jit_var(j, t->vi, "bytes");
    jit_set(j, lanes, x);
    JitValue from = jit_array_ptr(j, lanes, t->p_i32), to = jit_buf(j, out_buf, t->p_u8);
    JitValue first = jit_tmp(j, at);
    JitLoop l =
        jit_for(j, jit_i64(j, 0), m->n_valid ? m->n_valid : jit_i64(j, jit_lanes(j)), 1, "i");
    JitValue one = jit_load(j, from, jit_index(&l));
    if (dtype == DTYPE_BOOL)
        one = jit_and(j, one, jit_i32(j, 1));
    jit_store(j, to, jit_add(j, first, jit_index(&l)), jit_cast(j, one, t->u8));
    jit_end_for(j, &l);
}

static void store(EpilogueEmit *m, int out_buf, JitValue x)
{
    Jit *j = m->j;
    DType dtype = m->e->out.dtype;
    JitValue at = linear_index(m);
    if (point_is_byte(dtype)) {
        store_bytes(m, out_buf, at, x, dtype);
        return;
    }
    JitValue p = jit_buf(j, out_buf, point_pointer(j, dtype));
    if (m->n_valid)
        jit_vstore_partial(j, p, at, m->n_valid, x);
    else
        jit_vstore(j, p, at, x);
}

/* A value of the result's shape lies as the result does, but for its pitch. */
static bool lies_as_result(const Epilogue *e, const EpilogueInput *i)
{
    const Type *t = value_type(e->body, i->value);
    return value_node(e->body, i->value)->op == OP_input && type_same_shape(t, &e->out);
}

/* Lines by their last byte: where a row begins within a line, its first one has been asked for with
 * the columns before. */
static void ask_lines(Jit *j, int buf, JitValue at, int64_t n, DType dtype, bool write)
{
    int64_t bytes = dtype_bytes(dtype);
    JitValue from = jit_buf(j, buf, jit_types(j)->p_char);
    JitValue first = jit_tmp(j, jit_mul(j, at, jit_i64(j, bytes)));
    for (int64_t k = 0; k < n * bytes; k += LINE_BYTES) {
        int64_t end = k + LINE_BYTES < n * bytes ? k + LINE_BYTES : n * bytes;
        JitValue last = jit_add(j, first, jit_i64(j, end - 1));
        jit_prefetch_line(j, jit_offset(j, from, last), write);
    }
}

void epilogue_ask(Jit *j, const Epilogue *e, int out_buf, JitValue row, JitValue col, int64_t n)
{
    JitValue at = jit_tmp(j, jit_muladd_i64(j, row, columns(e), col));
    ask_lines(j, out_buf, at, n, e->out.dtype, true);
    for (int i = 0; i < e->n_inputs; i++) {
        const EpilogueInput *in = &e->input[i];
        JitValue from = in->pitch ? jit_tmp(j, jit_muladd_i64(j, row, in->pitch, col)) : at;
        if (lies_as_result(e, in))
            ask_lines(j, in->buf, from, n, value_type(e->body, in->value)->dtype, false);
    }
}

void epilogue_store(Jit *j, const Epilogue *e, int out_buf, JitValue acc, JitValue row,
                    JitValue col, JitValue n_valid)
{
    EpilogueEmit m = {j, e, acc, jit_tmp(j, row), jit_tmp(j, col), n_valid};
    if (e->bias_buf >= 0) {
        JitValue bias = load_row(&m, e->bias_buf, m.col, DTYPE_F32);
        m.acc = jit_tmp(j, jit_add(j, acc, bias));
    }
    JitValue result = m.acc;
    if (e->body) {
        PointSource source = {&m,           operand_value, linear_index, row_in_matrix,
                              column_index, operand_word,  operand_bits};
        point_emit_body(j, e->body, &e->result, 1, &source, &result);
    }
    store(&m, out_buf, result);
}
