/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/point/epilogue.h"

#include "codegen/cpu/point/point_jit.h"
#include "codegen/cpu/point/relu_mask.h"
#include "ir/support/bug.h"

Epilogue epilogue_none(const Type *out)
{
    Epilogue e = {.bias_buf = -1, .acc = VALUE_NONE, .result = VALUE_NONE, .out = *out};
    return e;
}

static const Node *matrix_node(const Graph *body)
{
    for (size_t i = 0; i < body->order.len; i++) {
        const Node *n = graph_node(body, body->order.data[i]);
        if (op_table[n->op].op_class == OP_CLASS_MATRIX)
            return n;
    }
    BUG("a fused group without a matrix operation has no epilogue");
}

static bool is_exponent(const Graph *body, const Node *n, int in)
{
    double e;
    return in == 1 && point_known_exponent(body, n, &e);
}

/* Some element-wise operation reads v from the kernel's arguments. */
static bool read_by_points(const Graph *body, ValueId v)
{
    for (size_t i = 0; i < body->order.len; i++) {
        const Node *n = graph_node(body, body->order.data[i]);
        for (int k = 0; k < n->n_in; k++)
            if (n->in[k] == v && op_table[n->op].op_class == OP_CLASS_POINT &&
                !is_exponent(body, n, k))
                return true;
    }
    return false;
}

static void add_input(Epilogue *e, ValueId inner, CallBuf outer, CallDraft *call)
{
    if (e->n_inputs == EPILOGUE_MAX_INPUTS || call->n_bufs == CALL_MAX_BUFS)
        BUG("an epilogue with too many operands");
    e->input[e->n_inputs++] = (EpilogueInput){inner, call->n_bufs};
    call->buf[call->n_bufs++] = outer;
}

static CallBuf number_of(const Graph *body, const Node *constant)
{
    DType dtype = value_type(body, constant->out[0])->dtype;
    return (CallBuf){CALL_NUMBER, point_word(dtype, node_float(constant, ATTR_value, 0))};
}

void epilogue_add_body(Epilogue *e, const Node *fused, CallDraft *call)
{
    const Graph *body = fused->body;
    e->body = body;
    e->acc = matrix_node(body)->out[0];
    e->result = body->outputs.data[0].value;
    int input = 0;
    for (size_t i = 0; i < body->order.len; i++) {
        const Node *n = graph_node(body, body->order.data[i]);
        if (n->op != OP_input && n->op != OP_const)
            continue;
        CallBuf outer = n->op == OP_const ? number_of(body, n) : (CallBuf){fused->in[input++], 0};
        if (read_by_points(body, n->out[0]))
            add_input(e, n->out[0], outer, call);
    }
}

bool epilogue_may_alias(const Epilogue *e)
{
    for (int i = 0; i < e->n_inputs; i++)
        if (type_same_shape(value_type(e->body, e->input[i].value), &e->out))
            return true;
    return false;
}

/* --- key --- */

static void attr_key(StrBuf *key, const Attr *a)
{
    strbuf_printf(key, " %s=", attr_name(a->key));
    switch (attr_kind(a->key)) {
    case ATTR_KIND_INT:
    case ATTR_KIND_BOOL:
        strbuf_printf(key, "%lld", (long long)a->u.i);
        break;
    case ATTR_KIND_INTS:
        for (int i = 0; i < a->n; i++)
            strbuf_printf(key, "%lld,", (long long)a->u.ints[i]);
        break;
    case ATTR_KIND_FLOAT:
        strbuf_printf(key, "%a", a->u.f);
        break;
    case ATTR_KIND_FLOATS:
        for (int i = 0; i < a->n; i++)
            strbuf_printf(key, "%a,", a->u.floats[i]);
        break;
    case ATTR_KIND_STRING:
        strbuf_put(key, a->u.s);
        break;
    }
}

/* An exponent is named with its power; what else is constant is an argument. */
static void node_key(StrBuf *key, const Graph *body, const Node *n)
{
    double exponent;
    const Type *t = value_type(body, n->out[0]);
    strbuf_printf(key, ";%u=%s:%s", n->out[0], op_name(n->op), dtype_name(t->dtype));
    for (int i = 0; i < t->rank; i++)
        strbuf_printf(key, "x%lld", (long long)t->dim[i]);
    for (int i = 0; i < n->n_in; i++)
        strbuf_printf(key, " %u", n->in[i]);
    for (int i = 0; i < n->n_attr && n->op != OP_const; i++)
        attr_key(key, &n->attr[i]);
    if (point_known_exponent(body, n, &exponent))
        strbuf_printf(key, " ^%a", exponent);
}

void epilogue_key(StrBuf *key, const Epilogue *e)
{
    strbuf_printf(key, " bias%d", e->bias_buf);
    if (!e->body)
        return;
    strbuf_printf(key, " body(%u>%u", e->acc, e->result);
    for (size_t i = 0; i < e->body->order.len; i++)
        node_key(key, e->body, graph_node(e->body, e->body->order.data[i]));
    for (int i = 0; i < e->n_inputs; i++)
        strbuf_printf(key, ";%u@%d", e->input[i].value, e->input[i].buf);
    strbuf_put(key, ")");
}

const char *matrix_key(Pool *pool, const char *what, const void *desc, size_t bytes,
                       const Epilogue *e)
{
    StrBuf key = strbuf_new(pool);
    desc_key(&key, what, desc, bytes);
    epilogue_key(&key, e);
    return key.text;
}

/* --- code --- */

/* One vector of elements being finished. */
typedef struct EpilogueEmit {
    Jit *j;
    const Epilogue *e;
    JitValue acc, row, col, n_valid;
} EpilogueEmit;

/* Element strides of an operand over the result's dims, as numpy aligns it or along one axis. */
static void operand_strides(const Epilogue *e, const Type *t, int axis, int64_t *stride)
{
    for (int d = 0; d < e->out.rank; d++)
        stride[d] = d == axis;
    if (axis >= 0)
        return;
    int64_t dense = 1;
    for (int d = t->rank - 1; d >= 0; d--) {
        stride[e->out.rank - t->rank + d] = t->dim[d] == 1 ? 0 : dense;
        dense *= t->dim[d];
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

/* Bytes become lanes of 0 / value, or 0 / -1 for bool; one by one. */
static JitValue load_bytes(EpilogueEmit *m, int buf, JitValue at, DType dtype)
{
    Jit *j = m->j;
    const JitTypes *t = jit_types(j);
    JitVar lanes = jit_var(j, t->vi, "bytes");
    jit_set(j, lanes, jit_zero(j, t->vi));
    JitValue to = jit_array_ptr(j, lanes, t->p_i32), from = jit_buf(j, buf, t->p_u8);
    JitValue first = jit_tmp(j, at);
    JitLoop l =
        jit_for(j, jit_i64(j, 0), m->n_valid ? m->n_valid : jit_i64(j, jit_lanes(j)), 1, "i");
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
    if (dtype == DTYPE_F32)
        return jit_tmp(j, jit_splat(j, jit_load(j, jit_buf(j, buf, t->p_f32), at)));
    if (dtype == DTYPE_I32)
        return jit_tmp(j, jit_splat(j, jit_load(j, jit_buf(j, buf, t->p_i32), at)));
    JitValue x = jit_cast(j, jit_load(j, jit_buf(j, buf, t->p_u8), at), t->i32);
    return jit_tmp(j, jit_splat(j, dtype == DTYPE_BOOL ? jit_neg(j, x) : x));
}

static JitValue load_row(EpilogueEmit *m, int buf, JitValue at, DType dtype)
{
    Jit *j = m->j;
    const JitTypes *t = jit_types(j);
    if (dtype == DTYPE_U8 || dtype == DTYPE_BOOL)
        return load_bytes(m, buf, at, dtype);
    JitValue p = jit_buf(j, buf, dtype == DTYPE_F32 ? t->p_f32 : t->p_i32);
    return m->n_valid ? jit_vload_partial(j, p, at, m->n_valid, 0) : jit_vload(j, p, at);
}

static int operand_buf(const EpilogueEmit *m, ValueId v)
{
    for (int i = 0; i < m->e->n_inputs; i++)
        if (m->e->input[i].value == v)
            return m->e->input[i].buf;
    BUG("an epilogue reads a value that is no operand");
}

static JitValue operand_value(void *user, ValueId v, int axis)
{
    EpilogueEmit *m = user;
    if (v == m->e->acc)
        return m->acc;
    int buf = operand_buf(m, v);
    if (value_node(m->e->body, v)->op == OP_const)
        return point_number_lanes(m->j, value_type(m->e->body, v)->dtype, buf);
    int64_t stride[TYPE_MAX_RANK];
    const Type *t = value_type(m->e->body, v);
    operand_strides(m->e, t, axis, stride);
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
    return jit_buf(m->j, operand_buf(m, v), jit_types(m->j)->p_i32);
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
    const JitTypes *t = jit_types(j);
    DType dtype = m->e->out.dtype;
    JitValue at = linear_index(m);
    if (dtype == DTYPE_U8 || dtype == DTYPE_BOOL) {
        store_bytes(m, out_buf, at, x, dtype);
        return;
    }
    JitValue p = jit_buf(j, out_buf, dtype == DTYPE_F32 ? t->p_f32 : t->p_i32);
    if (m->n_valid)
        jit_vstore_partial(j, p, at, m->n_valid, x);
    else
        jit_vstore(j, p, at, x);
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
