/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/summary.h"

#include <string.h>

static bool is_product(OpKind op)
{
    return op == OP_conv2d || op == OP_deconv2d || op == OP_linear || op == OP_matmul;
}

static double graph_macs(const Graph *g);

/* A multiply-add is two flops; the bias, one flop an element, is not counted. */
static double node_macs(const Graph *g, const Node *n)
{
    if (n->op == OP_loop)
        return graph_macs(n->body) * (double)node_int(n, ATTR_steps, 1);
    if (!is_product(n->op))
        return 0;
    double bias = n->n_in > 2 ? (double)type_elements(value_type(g, n->out[0])) : 0;
    return (node_flops(g, n) - bias) / 2;
}

static double graph_macs(const Graph *g)
{
    double sum = 0;
    for (size_t i = 0; i < g->order.len; i++)
        sum += node_macs(g, graph_node(g, g->order.data[i]));
    return sum;
}

typedef struct Lists {
    VEC(SummaryTensor) params, buffers;
    VEC(SummaryOp) ops;
} Lists;

static void count_op(Pool *pool, Lists *lists, const char *name)
{
    for (size_t i = 0; i < lists->ops.len; i++) {
        if (strcmp(lists->ops.data[i].name, name) == 0) {
            lists->ops.data[i].count++;
            return;
        }
    }
    vec_push(pool, &lists->ops, (SummaryOp){name, 1});
}

static void add_source(Pool *pool, const Graph *g, const Node *n, Summary *s, Lists *lists)
{
    const Value *v = graph_value(g, n->out[0]);
    SummaryTensor t = {v->name + 1, v->type, type_elements(&v->type)};
    if (n->op == OP_param) {
        s->params += t.elements;
        s->param_bytes += type_bytes(&v->type);
        vec_push(pool, &lists->params, t);
    } else if (n->op == OP_buffer) {
        s->buffers += t.elements;
        vec_push(pool, &lists->buffers, t);
    }
}

static void add_node(Pool *pool, const Graph *g, const Node *n, Summary *s, Lists *lists)
{
    if (node_is_source(n)) {
        add_source(pool, g, n, s, lists);
        return;
    }
    s->nodes++;
    count_op(pool, lists, op_name(n->op));
}

Summary graph_summary(Pool *pool, const Graph *g)
{
    Summary s = {.output = {.rank = -1}, .macs = graph_macs(g)};
    Lists lists = {.ops = {0}};
    for (size_t i = 0; i < g->order.len; i++)
        add_node(pool, g, graph_node(g, g->order.data[i]), &s, &lists);
    ValueId logits = graph_output(g, "logits");
    if (logits != VALUE_NONE)
        s.output = *value_type(g, logits);
    s.ops = lists.ops.data;
    s.n_ops = (int)lists.ops.len;
    s.parameters = lists.params.data;
    s.n_parameters = (int)lists.params.len;
    s.buffer_list = lists.buffers.data;
    s.n_buffers = (int)lists.buffers.len;
    return s;
}
