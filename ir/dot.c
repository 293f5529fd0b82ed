/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/print.h"

#include <inttypes.h>

static const char *colour_of(OpClass c)
{
    switch (c) {
    case OP_CLASS_SOURCE:
        return "white";
    case OP_CLASS_POINT:
        return "palegreen";
    case OP_CLASS_VIEW:
        return "gray95";
    case OP_CLASS_MATRIX:
        return "lightsalmon";
    case OP_CLASS_DATA:
        return "lightgray";
    case OP_CLASS_REDUCE:
        return "lightskyblue";
    case OP_CLASS_UPDATE:
        return "gold";
    case OP_CLASS_REGION:
        return "plum";
    }
    return "white";
}

/* Text inside a quoted dot string. */
static void put_text(StrBuf *out, const char *s)
{
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            strbuf_put(out, "\\");
        strbuf_putn(out, (unsigned char)*s < 32 ? " " : s, 1);
    }
}

static void put_node(const Graph *g, NodeId id, StrBuf *out)
{
    const Node *n = graph_node(g, id);
    strbuf_printf(out, "  n%" PRIu32 " [label=\"%s\\n", id, op_name(n->op));
    if (n->n_out)
        put_text(out, graph_value(g, n->out[0])->name);
    for (size_t i = 0; n->body && i < n->body->order.len; i++) {
        const Node *inner = graph_node(n->body, n->body->order.data[i]);
        if (!node_is_source(inner))
            strbuf_printf(out, "\\n%s", op_name(inner->op));
    }
    strbuf_printf(out, "\", shape=%s, fillcolor=%s", node_is_source(n) ? "ellipse" : "box",
                  colour_of(op_table[n->op].op_class));
    strbuf_put(out,
               n->remat_of != NODE_NONE || n->remat_by ? ", style=\"filled,dashed\"];\n" : "];\n");
}

static void put_edges(const Graph *g, NodeId id, StrBuf *out)
{
    const Node *n = graph_node(g, id);
    for (int i = 0; i < n->n_in; i++)
        strbuf_printf(out, "  n%" PRIu32 " -> n%" PRIu32 " [label=\"%s\"];\n",
                      graph_value(g, n->in[i])->def, id,
                      type_text(out->pool, value_type(g, n->in[i])));
    for (int i = 0; i < n->n_out; i++) {
        ValueId target = graph_value(g, n->out[i])->writes;
        if (target != VALUE_NONE)
            strbuf_printf(out, "  n%" PRIu32 " -> n%" PRIu32 " [style=dotted, constraint=false];\n",
                          id, graph_value(g, target)->def);
    }
}

void graph_print_dot(const Graph *g, StrBuf *out)
{
    strbuf_put(out, "digraph \"");
    put_text(out, g->name);
    strbuf_put(out, "\" {\n  node [style=filled, fontname=\"monospace\"];\n");
    for (size_t i = 0; i < g->order.len; i++)
        put_node(g, g->order.data[i], out);
    for (size_t i = 0; i < g->order.len; i++)
        put_edges(g, g->order.data[i], out);
    for (size_t i = 0; i < g->outputs.len; i++) {
        strbuf_printf(out, "  out%zu [label=\"", i);
        put_text(out, g->outputs.data[i].name);
        strbuf_printf(out, "\", shape=plaintext, style=\"\"];\n  n%" PRIu32 " -> out%zu;\n",
                      graph_value(g, g->outputs.data[i].value)->def, i);
    }
    strbuf_put(out, "}\n");
}
