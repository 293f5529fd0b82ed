/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/loop.h"

#include "ir/graph_internal.h"
#include "ir/support/bug.h"

#include <string.h>

NodeId graph_try_add_loop(Graph *g, const ValueId *in, int n_in, const LoopShape *shape,
                          Graph *body, const char *name, Loc loc, ShapeError *err)
{
    AttrList attrs = {.n = 0};
    attrs_int(&attrs, ATTR_steps, shape->steps);
    attrs_int(&attrs, ATTR_carries, shape->carries);
    attrs_int(&attrs, ATTR_slices, shape->slices);
    attrs_int(&attrs, ATTR_reverse, shape->reverse);
    return graph_try_add_region(g, OP_loop, in, n_in, &attrs, body, name, loc, err);
}

NodeId graph_add_loop(Graph *g, const ValueId *in, int n_in, const LoopShape *shape, Graph *body,
                      const char *name, Loc loc)
{
    ShapeError err;
    NodeId n = graph_try_add_loop(g, in, n_in, shape, body, name, loc, &err);
    if (n == NODE_NONE)
        BUG("a loop (%s): %s", name ? name : "unnamed", err.message);
    return n;
}

/* A value for each of the body's outputs that the node has none for yet. */
static void add_missing_results(Graph *g, NodeId loop)
{
    Node *node = graph_node(g, loop);
    int first = node->n_out, all = (int)node->body->outputs.len;
    ValueId *out = POOL_ARRAY(g->pool, (size_t)all + 1, ValueId);
    memcpy(out, node->out, (size_t)first * sizeof *out);
    for (int i = first; i < all; i++) {
        const Type *t = value_type(node->body, node->body->outputs.data[i].value);
        Type stacked = {
            .dtype = t->dtype, .rank = t->rank + 1, .dim = {node_int(node, ATTR_steps, 1)}};
        memcpy(stacked.dim + 1, t->dim, (size_t)t->rank * sizeof *t->dim);
        const char *name =
            graph_unique_name(g, pool_printf(g->pool, "%s#%d", graph_value(g, out[0])->name, i));
        out[i] = (ValueId)g->values.len;
        Value v = {stacked, loop, i, name, VALUE_NONE, VALUE_NONE};
        vec_push(g->pool, &g->values, v);
        map_set(&g->names, name, out[i]);
    }
    node->out = out;
    node->n_out = all;
}

ValueId loop_add_results(Graph *g, NodeId loop, const ValueId *of_body, int n)
{
    Graph *body = graph_node(g, loop)->body;
    int first = graph_node(g, loop)->n_out;
    for (int i = 0; i < n; i++)
        graph_add_output(body, pool_printf(g->pool, "out%zu", body->outputs.len), of_body[i]);
    add_missing_results(g, loop);
    return graph_node(g, loop)->out[first];
}

void loop_take_results(Graph *g, NodeId loop, const Graph *body)
{
    graph_node(g, loop)->body = graph_copy(g->pool, body);
    add_missing_results(g, loop);
}

void loop_keep_results(Graph *g, NodeId loop, const bool *keep)
{
    Node *node = graph_node(g, loop);
    int carries = (int)node_int(node, ATTR_carries, 0), kept = 0;
    for (int i = 0; i < node->n_out; i++) {
        if (i >= carries && !keep[i])
            continue;
        node->out[kept] = node->out[i];
        graph_value(g, node->out[kept])->out_index = kept;
        node->body->outputs.data[kept].value = node->body->outputs.data[i].value;
        kept++; /* a body's outputs are called by their number */
    }
    node->n_out = kept;
    node->body->outputs.len = (size_t)kept;
}
