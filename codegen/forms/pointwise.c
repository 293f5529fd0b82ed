/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lowering of element-wise nodes and of fused groups of them. */
#include "codegen/forms/point.h"

#include "ir/support/bug.h"
#include "ir/support/strbuf.h"

/* Buffers of the call under construction: the values the program reads and writes. */
typedef struct Bufs {
    Lowering *l;
    const Node *node;
    CallBuf buf[CALL_MAX_BUFS];
    int n;
} Bufs;

static int buf_of(Bufs *b, ValueId v)
{
    for (int i = 0; i < b->n; i++)
        if (b->buf[i].value == v)
            return i;
    if (b->n == CALL_MAX_BUFS)
        BUG("an element-wise group with more than %d buffers", CALL_MAX_BUFS);
    b->buf[b->n] = point_buf(b->l->graph, v);
    return b->n++;
}

/* A value of the graph around; constants become numbers. */
static int load_value(Bufs *b, PointProgram *p, ValueId v, int axis, int word)
{
    const Graph *g = b->l->graph;
    const Type *t = value_type(g, v);
    const Node *def = value_node(g, v);
    if (def->op == OP_const)
        return point_number(p, t->dtype, node_float(def, ATTR_value, 0));
    if (word >= 0) {
        PointAccess one = {.buf = buf_of(b, v), .dtype = t->dtype, .base = word};
        return point_load(p, one);
    }
    return point_load(p, point_access_value(p, buf_of(b, v), g, v, t->rank ? axis : -1));
}

static int node_leaf(void *user, PointProgram *p, ValueId v, int axis, int word)
{
    return load_value(user, p, v, axis, word);
}

/* Input i of a body is its i-th `input` node. */
static int body_leaf(void *user, PointProgram *p, ValueId v, int axis, int word)
{
    Bufs *b = user;
    const Graph *body = b->node->body;
    const Node *def = value_node(body, v);
    if (def->op == OP_const)
        return point_number(p, value_type(body, v)->dtype, node_float(def, ATTR_value, 0));
    int index = 0;
    for (size_t k = 0; k < body->order.len; k++) {
        const Node *n = graph_node(body, body->order.data[k]);
        if (n->op != OP_input)
            continue;
        if (n->out[0] == v)
            return load_value(b, p, b->node->in[index], axis, word);
        index++;
    }
    BUG("a body reads %s, which is no input of it", graph_value(body, v)->name);
}

void point_node(Lowering *l, const Node *node)
{
    Bufs b = {.l = l, .node = node};
    const Type *out = value_type(l->graph, node->out[0]);
    PointProgram *p = point_program(l->pool, out);
    int reg = point_add_node(p, l->graph, node, node_leaf, &b);
    point_store(p, reg,
                point_access_value(p, buf_of(&b, node->out[0]), l->graph, node->out[0], -1));
    point_call(l, p, op_name(node->op), b.buf, b.n, node_flops(l->graph, node));
}

/* "add+relu+mul" */
static const char *body_label(Pool *pool, const Graph *body)
{
    StrBuf s = strbuf_new(pool);
    for (size_t k = 0; k < body->order.len && s.len < 60; k++) {
        OpKind op = graph_node(body, body->order.data[k])->op;
        if (op_table[op].op_class == OP_CLASS_POINT)
            strbuf_printf(&s, "%s%s", s.len ? "+" : "", op_name(op));
    }
    return s.text ? s.text : "fused";
}

/* One program for all outputs of one shape: a group has outputs of one shape only. */
void lower_point_group(Lowering *l, const Node *node)
{
    const Graph *body = node->body;
    Bufs b = {.l = l, .node = node};
    int n = node->n_out;
    const Type *space = value_type(l->graph, node->out[0]);
    ValueId *wanted = POOL_ARRAY(l->pool, (size_t)n, ValueId);
    int *reg = POOL_ARRAY(l->pool, (size_t)n, int);
    PointProgram *p = point_program(l->pool, space);
    for (int i = 0; i < n; i++)
        wanted[i] = body->outputs.data[i].value;
    point_add_body(p, body, wanted, n, reg, body_leaf, &b);
    for (int i = 0; i < n; i++) {
        const Type *t = value_type(l->graph, node->out[i]);
        if (!type_same_shape(t, space))
            BUG("fused outputs of different shapes");
        point_store(p, reg[i],
                    point_access_value(p, buf_of(&b, node->out[i]), l->graph, node->out[i], -1));
    }
    point_call(l, p, body_label(l->pool, body), b.buf, b.n, node_flops(l->graph, node));
}
