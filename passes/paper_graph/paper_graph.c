/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/paper_graph/paper_graph_internal.h"

#include "ir/support/sort.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- facts ---- */

static bool is_result(const Output *o)
{
    return strcmp(o->name, "logits") == 0 ||
           (strncmp(o->name, "out", 3) == 0 && isdigit((unsigned char)o->name[3]));
}

/* Marks what a node reads as read by it. */
static void mark_inputs(CountFacts *f, NodeId id)
{
    const Node *n = graph_node(f->g, id);
    for (int i = 0; i < n->n_in; i++) {
        ValueId v = n->in[i];
        if (f->readers[v] == 0 || f->reader[v] != id)
            f->readers[v]++;
        f->reader[v] = id;
        f->needed[graph_value(f->g, v)->def] = true;
    }
}

/* Values that the model's results depend on, and nodes that the rule's targets depend on. */
static void find_needed(CountFacts *f, ValueId loss)
{
    const Graph *g = f->g;
    for (size_t i = 0; i < g->outputs.len; i++)
        if (is_result(&g->outputs.data[i]))
            f->of_model[g->outputs.data[i].value] = true;
    for (size_t i = g->order.len; i-- > 0;) {
        const Node *n = graph_node(g, g->order.data[i]);
        bool of_model = false;
        for (int k = 0; k < n->n_out; k++)
            of_model |= f->of_model[n->out[k]];
        for (int k = 0; of_model && k < n->n_in; k++)
            f->of_model[n->in[k]] = true;
    }
    if (loss != VALUE_NONE)
        f->needed[graph_value(g, loss)->def] = true;
    for (size_t i = 0; i < g->outputs.len && loss == VALUE_NONE; i++)
        if (is_result(&g->outputs.data[i]))
            f->needed[graph_value(g, g->outputs.data[i].value)->def] = true;
    for (size_t i = g->order.len; i-- > 0;)
        if (f->needed[g->order.data[i]])
            mark_inputs(f, g->order.data[i]);
}

static bool is_rng(const Node *n)
{
    return strcmp(node_string(n, ATTR_role, ""), "rng") == 0;
}

static void find_origins(CountFacts *f)
{
    for (size_t i = 0; i < f->g->order.len; i++) {
        const Node *n = graph_node(f->g, f->g->order.data[i]);
        bool trained = n->op == OP_param, varies = trained || n->op == OP_input;
        for (int k = 0; k < n->n_in; k++) {
            trained |= f->trained[n->in[k]];
            varies |= f->varies[n->in[k]];
        }
        for (int k = 0; k < n->n_out; k++) {
            f->trained[n->out[k]] = trained;
            f->varies[n->out[k]] = varies;
        }
    }
}

static CountFacts find_facts(Pool *scratch, const Graph *g, ValueId loss)
{
    size_t n = g->values.len + 1;
    CountFacts f = {.g = g,
                    .varies = POOL_ARRAY(scratch, n, bool),
                    .trained = POOL_ARRAY(scratch, n, bool),
                    .of_model = POOL_ARRAY(scratch, n, bool),
                    .needed = POOL_ARRAY(scratch, g->nodes.len + 1, bool),
                    .readers = POOL_ARRAY(scratch, n, int),
                    .reader = POOL_ARRAY(scratch, n, NodeId)};
    find_origins(&f);
    find_needed(&f, loss);
    return f;
}

/* ---- vertices ---- */

/* The vertices that hold a value, or what it is made of when it has none; ascending. */
typedef struct Held {
    const int *at;
    int n;
} Held;

typedef struct Counting {
    Pool *pool, *scratch;
    CountFacts facts;
    const CountingRule *rule;
    Held *held; /* by value */
    VEC(PaperVertex) vertex;
} Counting;

/* What a node reads, each vertex once. */
static Held held_by_inputs(Counting *c, Pool *pool, const Node *n)
{
    size_t all = 0, kept = 0;
    for (int i = 0; i < n->n_in; i++)
        all += (size_t)c->held[n->in[i]].n;
    if (all == 0)
        return (Held){NULL, 0};
    int *at = POOL_ARRAY(pool, all, int);
    all = 0;
    for (int i = 0; i < n->n_in; i++)
        for (int k = 0; k < c->held[n->in[i]].n; k++)
            at[all++] = c->held[n->in[i]].at[k];
    sort_ints(at, all);
    for (size_t i = 0; i < all; i++)
        if (kept == 0 || at[kept - 1] != at[i])
            at[kept++] = at[i];
    return (Held){at, (int)kept};
}

/* The vertex whose last value is v, when the node alone reads it; -1 otherwise. */
static int vertex_to_join(const Counting *c, ValueId v)
{
    if (c->facts.readers[v] != 1 || c->held[v].n != 1)
        return -1;
    int at = c->held[v].at[0];
    const PaperVertex *vertex = &c->vertex.data[at];
    return vertex->value == v && vertex->kind != COUNT_INPUT ? at : -1;
}

static bool only_reader_is(const CountFacts *f, ValueId v, OpKind op)
{
    return f->readers[v] == 1 && graph_node(f->g, f->reader[v])->op == op;
}

static bool single_elements(const CountFacts *f, const Node *n)
{
    if (!type_same_shape(value_type(f->g, n->out[0]), value_type(f->g, n->in[0])))
        return false;
    return n->op != OP_avgpool ||
           (node_ints_at(n, ATTR_kernel, 0, 1) == 1 && node_ints_at(n, ATTR_kernel, 1, 1) == 1);
}

static bool is_vertex(const Counting *c, const Node *n, CountHow how)
{
    const CountFacts *f = &c->facts;
    ValueId out = n->out[0];
    switch (how) {
    case COUNT_NONE:
        return false;
    case COUNT_INTO_ADD:
        return !only_reader_is(f, out, OP_add);
    case COUNT_INTO_LINEAR:
        return !only_reader_is(f, out, OP_linear);
    case COUNT_WINDOW:
        return !single_elements(f, n);
    case COUNT_OWN:
    case COUNT_IN_PLACE:
    case COUNT_CHAIN:
        break;
    }
    return f->trained[out] || (n->op == OP_input && f->of_model[out] && !is_rng(n));
}

static void set_value(Counting *c, PaperVertex *vertex, ValueId v)
{
    const Type *type = value_type(c->facts.g, v);
    vertex->value = v;
    vertex->name = graph_value(c->facts.g, v)->name + 1;
    vertex->elements = type_elements(type);
    vertex->bytes = type_bytes(type);
}

/* A loop is one vertex, with all of its results that are read. */
static void set_loop_size(const CountFacts *f, const Node *n, PaperVertex *vertex)
{
    vertex->elements = vertex->bytes = 0;
    for (int i = 0; i < n->n_out; i++)
        if (f->readers[n->out[i]] || f->of_model[n->out[i]]) {
            vertex->elements += type_elements(value_type(f->g, n->out[i]));
            vertex->bytes += type_bytes(value_type(f->g, n->out[i]));
        }
}

static int add_vertex(Counting *c, const Node *n, CountKind kind)
{
    Held from = held_by_inputs(c, c->pool, n);
    const char *name = kind == COUNT_OP_other ? op_name(n->op) : count_kinds[kind].name;
    PaperVertex vertex = {.op = name,
                          .kind = count_kinds[kind].kind,
                          .conv = kind == COUNT_OP_conv || kind == COUNT_OP_deconv,
                          .source = kind == COUNT_OP_input,
                          .n_from = from.n};
    vertex.from = POOL_ARRAY(c->pool, (size_t)from.n + 1, int);
    if (from.n)
        memcpy(vertex.from, from.at, (size_t)from.n * sizeof *vertex.from);
    set_value(c, &vertex, n->out[0]);
    if (n->op == OP_loop)
        set_loop_size(&c->facts, n, &vertex);
    vec_push(c->pool, &c->vertex, vertex);
    return (int)c->vertex.len - 1;
}

/* The vertex that the node shares with its operand, or -1. */
static int join_vertex(Counting *c, const Node *n, CountKind kind, CountHow how)
{
    int at = how == COUNT_IN_PLACE || how == COUNT_CHAIN ? vertex_to_join(c, n->in[0]) : -1;
    if (at < 0)
        return -1;
    PaperVertex *vertex = &c->vertex.data[at];
    if (how == COUNT_CHAIN && vertex->kind != COUNT_VIEW)
        return -1;
    if (how == COUNT_IN_PLACE)
        vertex->op = pool_printf(c->pool, "%s+%s", vertex->op, count_kinds[kind].name);
    set_value(c, vertex, n->out[0]);
    return at;
}

static void count_node(Counting *c, const Node *n)
{
    if (node_is_source(n) && n->op != OP_input)
        return;
    CountKind kind = count_kind(&c->facts, n);
    CountHow how = count_how(c->rule, kind);
    Held held = held_by_inputs(c, c->scratch, n);
    if (is_vertex(c, n, how)) {
        int at = join_vertex(c, n, kind, how);
        int *one = POOL_NEW(c->scratch, int);
        *one = at >= 0 ? at : add_vertex(c, n, kind);
        held = (Held){one, 1};
    }
    for (int i = 0; i < n->n_out; i++)
        c->held[n->out[i]] = held;
}

/* ---- sums ---- */

static int compare_ops(const void *a, const void *b)
{
    return strcmp(((const PaperOp *)a)->name, ((const PaperOp *)b)->name);
}

static void sum_up(Pool *pool, PaperGraph *out)
{
    PaperOp *op = POOL_ARRAY(pool, (size_t)out->n_vertices + 1, PaperOp);
    int n = 0;
    for (int i = 0; i < out->n_vertices; i++) {
        const PaperVertex *v = &out->vertex[i];
        int k = 0;
        while (k < n && strcmp(op[k].name, v->op) != 0)
            k++;
        if (k == n)
            op[n++].name = v->op;
        op[k].count++;
        op[k].elements += v->elements;
        out->n_edges += v->n_from;
        out->elements += v->elements;
        if (v->kind == COUNT_ACTIVATION)
            out->activation_elements += v->elements;
    }
    qsort(op, (size_t)n, sizeof *op, compare_ops);
    out->op = op;
    out->n_ops = n;
}

static void mark_targets(Counting *c, ValueId loss)
{
    const Graph *g = c->facts.g;
    for (size_t i = 0; i < g->outputs.len; i++) {
        const Output *o = &g->outputs.data[i];
        const Held *held = &c->held[o->value];
        if (loss != VALUE_NONE ? o->value == loss : is_result(o))
            for (int k = 0; k < held->n; k++)
                c->vertex.data[held->at[k]].target = true;
    }
}

PaperGraph paper_graph(Pool *pool, const Graph *g, const CountingRule *rule)
{
    Pool *scratch = pool_new_child(pool);
    ValueId loss = count_how(rule, COUNT_OP_loss) == COUNT_NONE
                       ? VALUE_NONE
                       : graph_output(g, train_loss(&g->train));
    Counting c = {.pool = pool,
                  .scratch = scratch,
                  .rule = rule,
                  .facts = find_facts(scratch, g, loss),
                  .held = POOL_ARRAY(scratch, g->values.len + 1, Held)};
    for (size_t i = 0; i < g->order.len; i++)
        if (c.facts.needed[g->order.data[i]])
            count_node(&c, graph_node(g, g->order.data[i]));
    mark_targets(&c, loss);
    PaperGraph out = {.rule = rule, .vertex = c.vertex.data, .n_vertices = (int)c.vertex.len};
    sum_up(pool, &out);
    pool_free(scratch);
    return out;
}
