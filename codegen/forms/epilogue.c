/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/forms/epilogue.h"

#include "codegen/forms/point.h"
#include "ir/strided_view.h"
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

ValueId group_prologue(const Graph *body)
{
    for (size_t i = 0; i < body->order.len; i++) {
        const Node *n = graph_node(body, body->order.data[i]);
        for (int k = 0; op_table[n->op].op_class == OP_CLASS_MATRIX && k < n->n_in; k++)
            if (op_table[value_node(body, n->in[k])->op].op_class == OP_CLASS_POINT)
                return n->in[k];
    }
    return VALUE_NONE;
}

static bool is_exponent(const Graph *body, const Node *n, int in)
{
    double e;
    return in == 1 && point_known_exponent(body, n, &e);
}

/* Some element-wise operation that does not work for the matrix operation reads v from the kernel's
 * arguments.  What works for it comes before it, and nothing else does that reads v. */
static bool read_by_points(const Graph *body, ValueId v)
{
    bool behind = group_prologue(body) == VALUE_NONE;
    for (size_t i = 0; i < body->order.len; i++) {
        const Node *n = graph_node(body, body->order.data[i]);
        behind = behind || op_table[n->op].op_class == OP_CLASS_MATRIX;
        for (int k = 0; behind && k < n->n_in; k++)
            if (n->in[k] == v && op_table[n->op].op_class == OP_CLASS_POINT &&
                !is_exponent(body, n, k))
                return true;
    }
    return false;
}

int64_t epilogue_pitch(const Graph *g, ValueId v)
{
    const Type *t = value_type(g, v);
    return value_is_dense(g, v) ? 0 : value_view(g, v).stride[t->rank - 2];
}

static void add_input(Epilogue *e, ValueId inner, CallBuf outer, int64_t pitch, CallDraft *call)
{
    if (e->n_inputs == EPILOGUE_MAX_INPUTS || call->n_bufs == CALL_MAX_BUFS)
        BUG("an epilogue with too many operands");
    e->input[e->n_inputs++] = (EpilogueInput){inner, call->n_bufs, pitch};
    call->buf[call->n_bufs++] = outer;
}

static CallBuf number_of(const Graph *body, const Node *constant)
{
    DType dtype = value_type(body, constant->out[0])->dtype;
    return (CallBuf){CALL_NUMBER, point_word(dtype, node_float(constant, ATTR_value, 0))};
}

void epilogue_add_body(Epilogue *e, const Graph *g, const Node *fused, CallDraft *call)
{
    const Graph *body = fused->body;
    if (body->outputs.data[0].value == matrix_node(body)->out[0])
        return;
    e->body = body;
    e->acc = matrix_node(body)->out[0];
    e->result = body->outputs.data[0].value;
    int input = 0;
    for (size_t i = 0; i < body->order.len; i++) {
        const Node *n = graph_node(body, body->order.data[i]);
        if (n->op != OP_input && n->op != OP_const)
            continue;
        bool constant = n->op == OP_const;
        ValueId v = constant ? VALUE_NONE : fused->in[input++];
        if (read_by_points(body, n->out[0]))
            add_input(e, n->out[0], constant ? number_of(body, n) : point_buf(g, v),
                      constant ? 0 : epilogue_pitch(g, v), call);
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

void body_key(StrBuf *key, const Graph *body)
{
    for (size_t i = 0; i < body->order.len; i++)
        node_key(key, body, graph_node(body, body->order.data[i]));
}

void epilogue_key(StrBuf *key, const Epilogue *e)
{
    strbuf_printf(key, " bias%d", e->bias_buf);
    if (e->out.dtype == DTYPE_BF16)
        strbuf_put(key, " bf16");
    if (!e->body)
        return;
    strbuf_printf(key, " body(%u>%u", e->acc, e->result);
    body_key(key, e->body);
    for (int i = 0; i < e->n_inputs; i++)
        strbuf_printf(key, ";%u@%d/%lld", e->input[i].value, e->input[i].buf,
                      (long long)e->input[i].pitch);
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
