/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/graph.h"

#include "ir/graph_internal.h"
#include "ir/shape_error.h"
#include "ir/support/bug.h"
#include "ir/train_fields.h"

#include <string.h>

Graph *graph_new(Pool *pool, const char *name)
{
    Graph *g = POOL_NEW(pool, Graph);
    g->pool = pool;
    g->name = pool_strdup(pool, name ? name : "");
    g->kind = "forward";
    g->source = "";
    g->options = "";
    g->names = map_new(pool);
    g->ordinals = map_new(pool);
    return g;
}

/* Names */

/* The next suffix to try for base, kept so that n equal names cost O(n) and not O(n^2). */
static const char *name_with_ordinal(Graph *g, const char *base, uint64_t first)
{
    uint64_t *found = map_find(&g->ordinals, base), n = found ? *found : first;
    const char *name;
    do
        name = pool_printf(g->pool, "%s.%llu", base, (unsigned long long)n++);
    while (map_find(&g->names, name));
    map_set(&g->ordinals, base, n);
    return name;
}

const char *graph_unique_name(Graph *g, const char *base)
{
    if (!map_find(&g->names, base))
        return pool_strdup(g->pool, base);
    return name_with_ordinal(g, base, 1);
}

static const char *default_name(Graph *g, OpKind op)
{
    return name_with_ordinal(g, pool_printf(g->pool, "%%%s", op_name(op)), 0);
}

ValueId graph_find(const Graph *g, const char *name)
{
    const uint64_t *found = map_find(&g->names, name);
    return found ? (ValueId)*found : VALUE_NONE;
}

ValueId graph_output(const Graph *g, const char *name)
{
    for (size_t i = 0; i < g->outputs.len; i++)
        if (strcmp(g->outputs.data[i].name, name) == 0)
            return g->outputs.data[i].value;
    return VALUE_NONE;
}

/* Building */

static bool check_arity(const Node *node, ShapeError *err)
{
    const OpInfo *op = &op_table[node->op];
    bool few = node->n_in < op->min_in;
    if (!few && (op->max_in < 0 || node->n_in <= op->max_in))
        return true;
    const char *bound = op->min_in == op->max_in ? "" : few ? "at least " : "at most ";
    return shape_fail(err, "E109", -1, "%s takes %s%d input(s), got %d", op->name, bound,
                      few ? op->min_in : op->max_in, node->n_in);
}

static bool check_result(const Node *node, const Type *t, ShapeError *err)
{
    bool empty = false;
    for (int i = 0; i < t->rank && i < TYPE_MAX_RANK; i++)
        empty |= t->dim[i] == 0;
    if (!empty && type_valid(t))
        return true;
    return shape_fail(err, "E108", -1, "%s: the result %s %s", op_name(node->op), SHOW(t),
                      empty ? "is empty" : "is too large");
}

int node_max_results(const Node *node)
{
    int n = node->body                ? (int)node->body->outputs.len
            : node->op == OP_minimize ? node->n_in - 1
                                      : 0;
    return n < FEW_RESULTS ? FEW_RESULTS : n;
}

bool node_infer(const Graph *g, const Node *node, Type *types, int *n_out, ShapeError *err)
{
    *err = (ShapeError){.code = "E110", .operand = -1};
    if (!check_arity(node, err))
        return false;
    *n_out = op_table[node->op].n_out;
    if (!op_table[node->op].shape(g, node, types, n_out, err))
        return false;
    for (int i = 0; i < *n_out; i++)
        if (!check_result(node, &types[i], err))
            return false;
    return true;
}

NodeId graph_append(Graph *g, const Node *node, const Type *types, const char *const *names,
                    int n_out)
{
    NodeId id = (NodeId)g->nodes.len;
    vec_reserve(g->pool, &g->nodes, g->nodes.len + 1);
    vec_reserve(g->pool, &g->order, g->order.len + 1);
    ValueId *out = POOL_ARRAY(g->pool, (size_t)n_out, ValueId);
    for (int i = 0; i < n_out; i++) {
        out[i] = (ValueId)g->values.len;
        Value v = {types[i], id, i, names[i], VALUE_NONE, VALUE_NONE};
        vec_push(g->pool, &g->values, v);
        map_set(&g->names, names[i], out[i]);
    }
    Node n = *node;
    n.out = out;
    n.n_out = n_out;
    vec_push(g->pool, &g->nodes, n);
    vec_push(g->pool, &g->order, id);
    return id;
}

static const char **output_names(Graph *g, OpKind op, const char *name, int n_out)
{
    const char **names = POOL_ARRAY(g->pool, (size_t)(n_out < 1 ? 1 : n_out), const char *);
    names[0] = name ? graph_unique_name(g, name) : default_name(g, op);
    for (int i = 1; i < n_out; i++)
        names[i] = graph_unique_name(g, pool_printf(g->pool, "%s#%d", names[0], i));
    return names;
}

static const char *copy_unless(Pool *pool, const char *last, const char *text)
{
    if (!text || !text[0])
        return NULL;
    return last && strcmp(last, text) == 0 ? last : pool_strdup(pool, text);
}

/* With the last node's texts where they are the same: neighbours mostly are of one part of the
 * model. */
static Loc copy_loc(Graph *g, const Loc *loc)
{
    const Loc last = g->nodes.len ? g->nodes.data[g->nodes.len - 1].loc : (Loc){0};
    return (Loc){loc->line, loc->column, copy_unless(g->pool, last.path, loc->path),
                 copy_unless(g->pool, last.file, loc->file)};
}

static Node node_make(Graph *g, OpKind op, const ValueId *in, int n_in, const AttrList *attrs,
                      Loc loc)
{
    Node n = {.op = op, .n_in = n_in, .loc = copy_loc(g, &loc), .remat_of = NODE_NONE};
    for (int i = 0; i < n_in; i++)
        if (in[i] >= g->values.len)
            BUG("input %d of %s is no value", i, op_name(op));
    if (n_in)
        n.in = pool_grow(g->pool, in, (size_t)n_in * sizeof *in, (size_t)n_in * sizeof *in);
    if (attrs && attrs->n) {
        n.attr = attrs_copy(g->pool, attrs->items, attrs->n);
        n.n_attr = attrs->n;
    }
    return n;
}

NodeId graph_try_add_region(Graph *g, OpKind op, const ValueId *in, int n_in, const AttrList *attrs,
                            Graph *body, const char *name, Loc loc, ShapeError *err)
{
    Node node = node_make(g, op, in, n_in, attrs, loc);
    node.body = body;
    Type few[FEW_RESULTS], *types = few;
    int n_out, room = node_max_results(&node);
    if (room > FEW_RESULTS)
        types = POOL_ARRAY(g->pool, (size_t)room, Type);
    if (!node_infer(g, &node, types, &n_out, err))
        return NODE_NONE;
    return graph_append(g, &node, types, output_names(g, op, name, n_out), n_out);
}

NodeId graph_try_add(Graph *g, OpKind op, const ValueId *in, int n_in, const AttrList *attrs,
                     const char *name, Loc loc, ShapeError *err)
{
    return graph_try_add_region(g, op, in, n_in, attrs, NULL, name, loc, err);
}

ValueId graph_add(Graph *g, OpKind op, const ValueId *in, int n_in, const AttrList *attrs,
                  const char *name, Loc loc)
{
    ShapeError err;
    NodeId n = graph_try_add(g, op, in, n_in, attrs, name, loc, &err);
    if (n == NODE_NONE)
        BUG("%s (%s): %s", op_name(op), name ? name : "unnamed", err.message);
    return graph_node(g, n)->out[0];
}

ValueId graph_add_source(Graph *g, OpKind op, Type type, const AttrList *attrs, const char *name,
                         Loc loc)
{
    if (op_table[op].op_class != OP_CLASS_SOURCE || !type_valid(&type))
        BUG("%s is no source, or its type is not valid", op_name(op));
    Node node = node_make(g, op, NULL, 0, attrs, loc);
    NodeId n = graph_append(g, &node, &type, output_names(g, op, name, 1), 1);
    return graph_node(g, n)->out[0];
}

ValueId graph_add_like(Graph *g, const Node *n, const ValueId *in, const AttrList *attrs,
                       const char *name)
{
    ShapeError err;
    AttrList own = {.n = n->n_attr};
    if (n->n_attr)
        memcpy(own.items, n->attr, (size_t)n->n_attr * sizeof *n->attr);
    Graph *body = n->body ? graph_copy(g->pool, n->body) : NULL;
    NodeId id =
        graph_try_add_region(g, n->op, in, n->n_in, attrs ? attrs : &own, body, name, n->loc, &err);
    if (id == NODE_NONE)
        BUG("%s (%s): %s", op_name(n->op), name ? name : "unnamed", err.message);
    return graph_node(g, id)->out[0];
}

void graph_add_output(Graph *g, const char *name, ValueId value)
{
    Output o = {pool_strdup(g->pool, name), value};
    vec_push(g->pool, &g->outputs, o);
}

/* Copying */

static void *copy_array(Pool *pool, const void *data, size_t bytes)
{
    return bytes ? pool_grow(pool, data, bytes, bytes) : NULL;
}

static const char *copy_text(Pool *pool, const char *s)
{
    return s ? pool_strdup(pool, s) : NULL;
}

static Node node_copy(Graph *to, const Node *n)
{
    Pool *pool = to->pool;
    Node c = *n;
    c.loc = copy_loc(to, &n->loc);
    c.in = copy_array(pool, n->in, (size_t)n->n_in * sizeof *n->in);
    c.out = copy_array(pool, n->out, (size_t)n->n_out * sizeof *n->out);
    c.attr = n->n_attr ? attrs_copy(pool, n->attr, n->n_attr) : NULL;
    c.body = n->body ? graph_copy(pool, n->body) : NULL;
    c.remat_by = copy_text(pool, n->remat_by);
    return c;
}

Graph *graph_copy(Pool *pool, const Graph *g)
{
    Graph *c = graph_new(pool, g->name);
    c->kind = copy_text(pool, g->kind);
    c->source = copy_text(pool, g->source);
    c->options = copy_text(pool, g->options);
    c->source_hash = g->source_hash;
    c->train = train_spec_copy(pool, &g->train);
    vec_reserve(pool, &c->nodes, g->nodes.len);
    vec_reserve(pool, &c->values, g->values.len);
    vec_reserve(pool, &c->order, g->order.len);
    for (size_t i = 0; i < g->nodes.len; i++)
        c->nodes.data[c->nodes.len++] = node_copy(c, &g->nodes.data[i]);
    for (size_t i = 0; i < g->values.len; i++) {
        Value v = g->values.data[i];
        v.name = pool_strdup(pool, v.name);
        c->values.data[c->values.len++] = v;
    }
    for (size_t i = 0; i < g->order.len; i++)
        c->order.data[c->order.len++] = g->order.data[i];
    for (size_t i = 0; i < g->outputs.len; i++)
        graph_add_output(c, g->outputs.data[i].name, g->outputs.data[i].value);
    for (size_t i = 0; i < g->total_metrics.len; i++) {
        TotalMetric m = g->total_metrics.data[i];
        m = (TotalMetric){pool_strdup(pool, m.name), graph_copy(pool, m.formula)};
        vec_push(pool, &c->total_metrics, m);
    }
    c->names = map_copy(pool, &g->names);
    c->ordinals = map_copy(pool, &g->ordinals);
    return c;
}

/* Questions */

bool node_is_view(const Node *n)
{
    return op_table[n->op].op_class == OP_CLASS_VIEW;
}

bool node_runs(const Node *n)
{
    return !node_is_view(n) && (!node_is_source(n) || n->op == OP_const);
}

bool graph_has_matrix(const Graph *g)
{
    for (size_t k = 0; k < g->order.len; k++)
        if (op_table[graph_node(g, g->order.data[k])->op].op_class == OP_CLASS_MATRIX)
            return true;
    return false;
}

bool node_is_source(const Node *n)
{
    return op_table[n->op].op_class == OP_CLASS_SOURCE;
}

bool node_is_persistent(const Node *n)
{
    return n->op == OP_param || n->op == OP_buffer || n->op == OP_state;
}

bool node_writes(const Graph *g, const Node *n)
{
    for (int i = 0; i < n->n_out; i++)
        if (graph_value(g, n->out[i])->writes != VALUE_NONE)
            return true;
    return false;
}

ValueId value_storage(const Graph *g, ValueId v)
{
    if (graph_value(g, v)->writes != VALUE_NONE)
        return graph_value(g, v)->writes;
    return node_is_persistent(value_node(g, v)) ? v : VALUE_NONE;
}
