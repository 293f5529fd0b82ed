/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Step graph -> RematProblem.  Views disappear: reading a view is reading its storage. */
#include "passes/remat/model/problem.h"

#include "ir/support/bug.h"
#include "passes/memplan/memplan.h"
#include "passes/remat/model/step_problem.h"

#include <string.h>

typedef struct Builder {
    const Graph *g;
    const NodeCosts *costs;
    RematProblem *p;
    RematMapping *map;
    int *tensor_of;  /* by ValueId; views share their storage's; -1 = none */
    int *version_of; /* by ValueId of a persistent tensor: the problem tensor that holds it now */
} Builder;

static int add_tensor(Builder *b, ValueId v, int producer)
{
    const Value *value = graph_value(b->g, v);
    int t = b->p->n_tensors++;
    int64_t bytes = value->writes != VALUE_NONE ? 0 : memplan_rounded(type_bytes(&value->type));
    bool persistent = producer < 0 && node_is_persistent(value_node(b->g, v));
    b->p->tensor[t] = (RematTensor){bytes, producer, persistent, false, value->name};
    b->map->value_of[t] = v;
    b->tensor_of[v] = t;
    if (persistent) {
        b->version_of[v] = t;
        b->p->persistent_bytes += bytes;
    }
    return t;
}

/* Distinct tensors read, in the order of first appearance. */
static void set_inputs(Builder *b, RematNode *node, const Node *n)
{
    node->in = POOL_ARRAY(b->p->pool, (size_t)n->n_in + 1, int);
    for (int i = 0; i < n->n_in; i++) {
        int t = b->tensor_of[n->in[i]], k = 0;
        if (t < 0)
            BUG("%s reads a value that is not in the order", op_name(n->op));
        while (k < node->n_in && node->in[k] != t)
            k++;
        if (k == node->n_in)
            node->in[node->n_in++] = t;
    }
}

static void set_outputs(Builder *b, RematNode *node, const Node *n, int index)
{
    node->out = POOL_ARRAY(b->p->pool, (size_t)n->n_out + 1, int);
    node->overwrites = POOL_ARRAY(b->p->pool, (size_t)n->n_out + 1, int);
    node->rerun = op_table[n->op].op_class != OP_CLASS_UPDATE;
    for (int i = 0; i < n->n_out; i++) {
        ValueId storage = graph_value(b->g, n->out[i])->writes;
        node->out[node->n_out++] = add_tensor(b, n->out[i], index);
        if (storage == VALUE_NONE)
            continue;
        node->rerun = false;
        node->overwrites[node->n_overwrites++] = b->version_of[storage];
        b->version_of[storage] = b->tensor_of[n->out[i]];
    }
}

static int position_of(const RematNode *node, int tensor)
{
    for (int k = 0; k < node->n_in; k++)
        if (node->in[k] == tensor)
            return k;
    BUG("not an input");
}

static void set_in_place(Builder *b, RematNode *node, const Node *n)
{
    node->in_place = POOL_ARRAY(b->p->pool, (size_t)n->n_out * (size_t)n->n_in + 1, RematInPlace);
    for (int o = 0; o < n->n_out; o++) {
        if (graph_value(b->g, n->out[o])->writes != VALUE_NONE)
            continue;
        for (int i = 0; i < n->n_in; i++) {
            int t = b->tensor_of[n->in[i]];
            if (b->p->tensor[t].bytes == b->p->tensor[node->out[o]].bytes &&
                node_may_overwrite(b->g, n, o, i))
                node->in_place[node->n_in_place++] = (RematInPlace){o, position_of(node, t)};
        }
    }
}

static void add_node(Builder *b, NodeId id)
{
    const Node *n = graph_node(b->g, id);
    int index = b->p->n_nodes++;
    RematNode *node = &b->p->node[index];
    node->name = n->n_out > 0 ? graph_value(b->g, n->out[0])->name : op_name(n->op);
    node->cost = node_cost(b->costs, b->g, id);
    node->workspace = memplan_rounded(node_workspace_bytes(b->g, n));
    node->hint = n->hint;
    set_inputs(b, node, n);
    set_outputs(b, node, n, index);
    set_in_place(b, node, n);
    b->map->node_of[index] = id;
}

static void add_in_order(Builder *b)
{
    for (size_t k = 0; k < b->g->order.len; k++) {
        NodeId id = b->g->order.data[k];
        const Node *n = graph_node(b->g, id);
        if (node_runs(n))
            add_node(b, id);
        else if (node_is_view(n))
            b->tensor_of[n->out[0]] = b->tensor_of[n->in[0]];
        else
            add_tensor(b, n->out[0], -1);
    }
}

/* The losses and everything they depend on, but for how an update has made weights. */
static void mark_forward(Builder *b)
{
    RematProblem *p = b->p;
    const TrainSpec *t = &b->g->train;
    p->loss_node = -1;
    for (int i = 0; i == 0 || i < t->n_goals; i++) {
        ValueId loss = graph_output(b->g, i ? t->goal[i].loss : train_loss(t));
        if (loss == VALUE_NONE || b->tensor_of[loss] < 0)
            continue;
        int node = p->tensor[b->tensor_of[loss]].producer;
        if (node >= 0)
            p->node[node].forward = true;
        if (node > p->loss_node)
            p->loss_node = node;
    }
    for (int n = p->loss_node; n >= 0; n--) {
        if (p->node[n].n_overwrites > 0)
            p->node[n].forward = false;
        for (int k = 0; p->node[n].forward && k < p->node[n].n_in; k++) {
            int producer = p->tensor[p->node[n].in[k]].producer;
            if (producer >= 0)
                p->node[producer].forward = true;
        }
    }
}

RematProblem *remat_problem_from_graph(Pool *pool, const Graph *g, const NodeCosts *costs,
                                       RematMapping *mapping)
{
    Builder b = {.g = g, .costs = costs, .map = mapping};
    size_t n_values = g->values.len + 1, n_nodes = g->nodes.len + 1;
    b.p = POOL_NEW(pool, RematProblem);
    b.p->pool = pool;
    b.p->node = POOL_ARRAY(pool, n_nodes, RematNode);
    b.p->tensor = POOL_ARRAY(pool, n_values, RematTensor);
    b.map->node_of = POOL_ARRAY(pool, n_nodes, NodeId);
    b.map->value_of = POOL_ARRAY(pool, n_values, ValueId);
    b.tensor_of = POOL_ARRAY(pool, n_values, int);
    b.version_of = POOL_ARRAY(pool, n_values, int);
    for (size_t v = 0; v < n_values; v++)
        b.tensor_of[v] = b.version_of[v] = -1;
    add_in_order(&b);
    for (size_t i = 0; i < g->outputs.len; i++) {
        int t = b.tensor_of[g->outputs.data[i].value];
        if (t >= 0)
            b.p->tensor[t].keep = true;
    }
    mark_forward(&b);
    return b.p;
}
