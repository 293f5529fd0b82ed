/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The end of a step: what the host reads of all micro-batches, and the order of operations. */
#include "passes/autodiff/step_builder.h"

#include "ir/support/bug.h"

#include <string.h>

static const Loc nowhere = {0};

/* (v0 + v1 + ..) / k */
static ValueId mean_of(Builder *b, const char *name, const ValueId *v)
{
    ValueId sum = v[0];
    for (int64_t j = 1; j < b->micro; j++)
        sum = graph_add(b->to, OP_add, (const ValueId[]){sum, v[j]}, 2, NULL,
                        pool_printf(b->to->pool, "%%%s.sum", name), nowhere);
    AttrList attrs = {0};
    attrs_float(&attrs, ATTR_value, 1 / (double)b->micro);
    ValueId factor = graph_add_source(b->to, OP_const, type_scalar(DTYPE_F32), &attrs,
                                      pool_printf(b->to->pool, "%%%s.part", name), nowhere);
    return graph_add(b->to, OP_mul, (const ValueId[]){sum, factor}, 2, NULL,
                     pool_printf(b->to->pool, "%%%s.mean", name), nowhere);
}

/* [k, ..] of k values [..] */
static ValueId stack_of(Builder *b, const char *name, const ValueId *v)
{
    ValueId *rows = POOL_ARRAY(b->scratch, (size_t)b->micro, ValueId);
    AttrList axis = {0};
    for (int64_t j = 0; j < b->micro; j++) {
        AttrList attrs = {0};
        Type t = *value_type(b->to, v[j]);
        memmove(t.dim + 1, t.dim, (size_t)t.rank * sizeof *t.dim);
        t.dim[0] = 1;
        attrs_ints(&attrs, ATTR_shape, t.dim, t.rank + 1);
        rows[j] = graph_add(b->to, OP_reshape, &v[j], 1, &attrs,
                            pool_printf(b->to->pool, "%%%s.row", name), nowhere);
    }
    attrs_int(&axis, ATTR_axis, 0);
    return graph_add(b->to, OP_concat, rows, (int)b->micro, &axis,
                     pool_printf(b->to->pool, "%%%s.all", name), nowhere);
}

void step_add_outputs(Builder *b)
{
    for (size_t i = 0; i < b->from->outputs.len; i++) {
        const char *name = b->from->outputs.data[i].name;
        const ValueId *v = b->results + i * (size_t)b->micro;
        const Type *t = value_type(b->to, v[0]);
        ValueId all = v[0];
        if (b->micro > 1)
            all =
                t->rank == 0 && t->dtype == DTYPE_F32 ? mean_of(b, name, v) : stack_of(b, name, v);
        graph_add_output(b->to, name, all);
    }
}

static bool follows_gradient(const Node *n)
{
    return n->op == OP_sumsq;
}

void step_settle_order(Builder *b)
{
    Graph *g = b->to;
    VEC(NodeId) order = {0};
    NodeId *first = POOL_ARRAY(b->scratch, g->nodes.len, NodeId); /* follower of a node, +1 */
    NodeId *next = POOL_ARRAY(b->scratch, g->nodes.len, NodeId);  /* follower after that, +1 */
    for (size_t i = g->order.len; i-- > 0;) {
        NodeId id = g->order.data[i];
        const Node *n = graph_node(g, id);
        if (!follows_gradient(n))
            continue;
        NodeId of = graph_value(g, n->in[0])->def;
        next[id] = first[of];
        first[of] = id + 1;
    }
    for (size_t i = 0; i < g->order.len; i++)
        if (node_is_source(graph_node(g, g->order.data[i])))
            vec_push(b->scratch, &order, g->order.data[i]);
    for (size_t i = 0; i < g->order.len; i++) {
        NodeId id = g->order.data[i];
        if (follows_gradient(graph_node(g, id)))
            continue;
        if (!node_is_source(graph_node(g, id)))
            vec_push(b->scratch, &order, id);
        for (NodeId f = first[id]; f; f = next[f - 1])
            vec_push(b->scratch, &order, f - 1);
    }
    if (order.len != g->order.len)
        BUG("autodiff: lost a node of the step");
    memcpy(g->order.data, order.data, order.len * sizeof *order.data);
}
