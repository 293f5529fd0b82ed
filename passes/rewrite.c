/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/rewrite.h"
#include "ir/strided_view.h"

#include "ir/support/bug.h"

#include <string.h>

Rewrite rewrite_begin(Graph *g, Pool *scratch)
{
    Rewrite r = {.graph = g, .scratch = scratch, .n_old = g->order.len};
    r.old_order = POOL_ARRAY(scratch, r.n_old, NodeId);
    if (r.n_old)
        memcpy(r.old_order, g->order.data, r.n_old * sizeof *r.old_order);
    g->order.len = 0;
    r.n_replacement = g->values.len;
    r.replacement = POOL_ARRAY(scratch, r.n_replacement, ValueId);
    for (size_t v = 0; v < r.n_replacement; v++)
        r.replacement[v] = (ValueId)v;
    return r;
}

/* Values made during the rewrite are never replaced themselves unless the table has grown for them.
 */
static void rewrite_grow(Rewrite *r, ValueId v)
{
    if (v < r->n_replacement)
        return;
    size_t n = 2 * (size_t)v + 16;
    r->replacement = pool_grow(r->scratch, r->replacement, r->n_replacement * sizeof(ValueId),
                               n * sizeof(ValueId));
    for (size_t i = r->n_replacement; i < n; i++)
        r->replacement[i] = (ValueId)i;
    r->n_replacement = n;
}

/* What v is now. */
static ValueId current(const Rewrite *r, ValueId v)
{
    while (v < r->n_replacement && r->replacement[v] != v)
        v = r->replacement[v];
    return v;
}

void rewrite_replace(Rewrite *r, ValueId from, ValueId to)
{
    rewrite_grow(r, from);
    r->replacement[from] = current(r, to);
}

void rewrite_inputs(Rewrite *r, NodeId n)
{
    Node *node = graph_node(r->graph, n);
    for (int i = 0; i < node->n_in; i++)
        node->in[i] = current(r, node->in[i]);
}

void rewrite_keep(Rewrite *r, NodeId n)
{
    rewrite_inputs(r, n);
    vec_push(r->graph->pool, &r->graph->order, n);
}

void rewrite_end(Rewrite *r)
{
    for (size_t i = 0; i < r->graph->outputs.len; i++) {
        Output *o = &r->graph->outputs.data[i];
        o->value = current(r, o->value);
    }
}

int *count_uses(const Graph *g, Pool *scratch)
{
    int *uses = POOL_ARRAY(scratch, g->values.len, int);
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        for (int k = 0; k < n->n_in; k++)
            uses[n->in[k]]++;
    }
    for (size_t i = 0; i < g->outputs.len; i++)
        uses[g->outputs.data[i].value]++;
    return uses;
}

UseList *list_uses(const Graph *g, Pool *scratch, size_t more)
{
    UseList *uses = POOL_ARRAY(scratch, g->values.len + more + 1, UseList);
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *n = graph_node(g, g->order.data[k]);
        for (int i = 0; i < n->n_in; i++) {
            Use use = {g->order.data[k], i};
            vec_push(scratch, &uses[n->in[i]], use);
        }
    }
    return uses;
}

bool *mark_outputs(const Graph *g, Pool *scratch)
{
    bool *is_output = POOL_ARRAY(scratch, g->values.len + 1, bool);
    for (size_t i = 0; i < g->outputs.len; i++)
        is_output[g->outputs.data[i].value] = true;
    return is_output;
}

bool const_value(const Graph *g, ValueId v, double *out)
{
    const Node *n = value_node(g, v);
    if (n->op != OP_const || value_type(g, v)->rank != 0)
        return false;
    *out = node_float(n, ATTR_value, 0.0);
    return true;
}

ValueId graph_add_const(Graph *g, double value, DType dtype)
{
    AttrList attrs = {0};
    attrs_float(&attrs, ATTR_value, value);
    return graph_add_source(g, OP_const, type_scalar(dtype), &attrs, NULL, (Loc){0});
}

ValueId graph_add_cast(Graph *g, ValueId v, DType to, RematHint hint)
{
    AttrList attrs = {0};
    attrs_string(&attrs, ATTR_dtype, dtype_name(to));
    const char *name = pool_printf(g->pool, "%%%s.%s", graph_value(g, v)->name + 1, dtype_name(to));
    ValueId cast = graph_add(g, OP_cast, &v, 1, &attrs, name, value_node(g, v)->loc);
    value_node(g, cast)->hint = hint;
    return cast;
}

int group_input(const Node *group, ValueId inner)
{
    for (int i = 0; i < group->n_in; i++)
        if (body_input(group->body, i) == inner)
            return i;
    return -1;
}

Places note_places(const Graph *g, Pool *scratch)
{
    Places p = {POOL_ARRAY(scratch, g->nodes.len, size_t),
                POOL_ARRAY(scratch, g->values.len, size_t)};
    memset(p.overwritten_at, 0xff, g->values.len * sizeof(size_t));
    ValueId *newest = POOL_ARRAY(scratch, g->values.len, ValueId); /* by persistent value, + 1 */
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        p.position[g->order.data[i]] = i;
        for (int k = 0; k < n->n_out; k++) {
            ValueId w = graph_value(g, n->out[k])->writes;
            if (w == VALUE_NONE)
                continue;
            p.overwritten_at[newest[w] ? newest[w] - 1 : w] = i;
            newest[w] = n->out[k] + 1;
        }
    }
    return p;
}

bool read_survives(const Graph *g, const Places *p, ValueId v, size_t at)
{
    while (node_is_view(value_node(g, v)))
        v = value_node(g, v)->in[0];
    return p->overwritten_at[v] >= at;
}

void become_group(Graph *g, Node *n, Graph *body, const ValueId *in, int n_in)
{
    ValueId *inputs = POOL_ARRAY(g->pool, (size_t)n_in, ValueId);
    if (n_in)
        memcpy(inputs, in, (size_t)n_in * sizeof *in);
    n->op = OP_fused;
    n->body = body;
    n->n_attr = 0;
    n->in = inputs;
    n->n_in = n_in;
}

ValueId group_add_result(Graph *g, NodeId group)
{
    Node *n = graph_node(g, group);
    const char *name = pool_printf(g->pool, "%s#%d", graph_value(g, n->out[0])->name, n->n_out);
    ValueId inner = n->body->outputs.data[n->n_out].value, made = (ValueId)g->values.len;
    Value v = {.type = *value_type(n->body, inner),
               .def = group,
               .out_index = n->n_out,
               .name = graph_unique_name(g, name),
               .writes = VALUE_NONE,
               .part_of = VALUE_NONE};
    vec_push(g->pool, &g->values, v);
    map_set(&g->names, v.name, made);
    ValueId *out = POOL_ARRAY(g->pool, (size_t)n->n_out + 1, ValueId);
    memcpy(out, n->out, (size_t)n->n_out * sizeof *out);
    out[n->n_out++] = made;
    n->out = out;
    return made;
}

void node_set_attr(Graph *g, Node *n, Attr attr)
{
    int at = 0;
    while (at < n->n_attr && n->attr[at].key < attr.key)
        at++;
    bool present = at < n->n_attr && n->attr[at].key == attr.key;
    Attr *list = POOL_ARRAY(g->pool, (size_t)n->n_attr + 1, Attr);
    for (int i = 0; i < at; i++)
        list[i] = n->attr[i];
    list[at] = attr;
    int rest = at + (present ? 1 : 0);
    for (int i = rest; i < n->n_attr; i++)
        list[at + 1 + i - rest] = n->attr[i];
    n->n_attr += present ? 0 : 1;
    n->attr = list;
}

void node_drop_attr(Node *n, AttrKey key)
{
    int kept = 0;
    for (int i = 0; i < n->n_attr; i++)
        if (n->attr[i].key != key)
            n->attr[kept++] = n->attr[i];
    n->n_attr = kept;
}

void node_retype(Graph *g, NodeId id)
{
    Node *n = graph_node(g, id);
    Type types[16];
    int n_out = n->n_out;
    ShapeError err = {0};
    if (n_out > 16 || !op_table[n->op].shape(g, n, types, &n_out, &err) || n_out != n->n_out)
        BUG("retyping %s: %s", op_name(n->op), err.message);
    for (int i = 0; i < n_out; i++)
        graph_value(g, n->out[i])->type = types[i];
}
