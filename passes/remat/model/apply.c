/* SPDX-License-Identifier: GPL-3.0-or-later */
/* RematSchedule -> graph order.  The first run of a node is the node itself, every further run is a
 * clone; readers are pointed at the latest run, and views are cloned with what they view. */
#include "passes/remat/model/problem.h"

#include "ir/graph_internal.h"
#include "ir/support/bug.h"
#include "passes/remat/model/step_problem.h"

#include <string.h>

typedef VEC(NodeId) NodeVec;
typedef VEC(ValueId) ValueVec;

typedef struct Apply {
    Graph *g;
    Pool *scratch;
    const RematMapping *map;
    const char *solver;
    ValueId **in_of; /* by old NodeId: its inputs before anything was redirected */
    ValueId *latest; /* by old ValueId: the value that now stands for it */
    ValueId
        *viewed; /* by old ValueId of a view: what its latest copy reads, VALUE_NONE = not placed */
    int *runs;   /* by old NodeId */
    ValueVec chain; /* scratch of current_value */
    NodeVec order;
} Apply;

static const char **clone_names(Graph *g, const Node *n, int run)
{
    const char **names = POOL_ARRAY(g->pool, (size_t)n->n_out + 1, const char *);
    for (int i = 0; i < n->n_out; i++) {
        const char *old = graph_value(g, n->out[i])->name;
        names[i] = graph_unique_name(g, pool_printf(g->pool, "%s~%d", old, run));
    }
    return names;
}

/* A copy of node `id` whose outputs become the latest of theirs. */
static NodeId clone_node(Apply *a, NodeId id, ValueId *in, int run)
{
    Graph *g = a->g;
    Node n = *graph_node(g, id);
    n.in = in;
    n.remat_of = id;
    n.remat_by = a->solver;
    Type *types = POOL_ARRAY(a->scratch, (size_t)n.n_out + 1, Type);
    for (int i = 0; i < n.n_out; i++)
        types[i] = graph_value(g, n.out[i])->type;
    NodeId clone = graph_append(g, &n, types, clone_names(g, &n, run), n.n_out);
    g->order.len--; /* the schedule places it instead */
    for (int i = 0; i < n.n_out; i++)
        a->latest[n.out[i]] = graph_node(g, clone)->out[i];
    return clone;
}

/* Places a run of node `id` that reads in[] (on the graph's pool). */
static void place_run(Apply *a, NodeId id, ValueId *in)
{
    int run = a->runs[id]++;
    if (run == 0)
        graph_node(a->g, id)->in = in;
    else
        id = clone_node(a, id, in, run);
    vec_push(a->scratch, &a->order, id);
}

/* What stands for v now.  A view is placed again when what it views has run again. */
static ValueId current_value(Apply *a, ValueId v)
{
    a->chain.len = 0;
    while (node_is_view(value_node(a->g, v))) {
        vec_push(a->scratch, &a->chain, v);
        v = a->in_of[graph_value(a->g, v)->def][0];
    }
    ValueId current = a->latest[v];
    while (a->chain.len > 0) {
        ValueId view = a->chain.data[--a->chain.len];
        if (a->viewed[view] != current) {
            a->viewed[view] = current;
            ValueId *in = POOL_NEW(a->g->pool, ValueId);
            *in = current;
            place_run(a, graph_value(a->g, view)->def, in);
        }
        current = a->latest[view];
    }
    return current;
}

static void place_node(Apply *a, NodeId id)
{
    int n_in = graph_node(a->g, id)->n_in;
    ValueId *in = POOL_ARRAY(a->g->pool, (size_t)n_in + 1, ValueId);
    for (int i = 0; i < n_in; i++)
        in[i] = current_value(a, a->in_of[id][i]);
    place_run(a, id, in);
}

static void begin_apply(Apply *a)
{
    size_t n_values = a->g->values.len, n_nodes = a->g->nodes.len;
    a->in_of = POOL_ARRAY(a->scratch, n_nodes + 1, ValueId *);
    a->runs = POOL_ARRAY(a->scratch, n_nodes + 1, int);
    a->latest = POOL_ARRAY(a->scratch, n_values + 1, ValueId);
    a->viewed = POOL_ARRAY(a->scratch, n_values + 1, ValueId);
    for (size_t n = 0; n < n_nodes; n++)
        a->in_of[n] = a->g->nodes.data[n].in;
    for (size_t v = 0; v < n_values; v++) {
        a->latest[v] = (ValueId)v;
        a->viewed[v] = VALUE_NONE;
    }
    for (size_t k = 0; k < a->g->order.len; k++) {
        const Node *n = graph_node(a->g, a->g->order.data[k]);
        if (node_is_source(n) && n->op != OP_const)
            vec_push(a->scratch, &a->order, a->g->order.data[k]);
    }
}

void remat_apply(Graph *g, const RematProblem *p, const RematMapping *mapping,
                 const RematSchedule *s, const char *solver_name)
{
    Apply a = {.g = g,
               .scratch = pool_new_child(g->pool),
               .map = mapping,
               .solver = pool_strdup(g->pool, solver_name)};
    begin_apply(&a);
    for (int i = 0; i < s->len; i++) {
        if (s->node[i] < 0 || s->node[i] >= p->n_nodes)
            BUG("schedule names node %d of %d", s->node[i], p->n_nodes);
        place_node(&a, mapping->node_of[s->node[i]]);
    }
    for (size_t i = 0; i < g->outputs.len; i++)
        g->outputs.data[i].value = current_value(&a, g->outputs.data[i].value);
    g->order.len = 0;
    for (size_t k = 0; k < a.order.len; k++)
        vec_push(g->pool, &g->order, a.order.data[k]);
    pool_free(a.scratch);
}
