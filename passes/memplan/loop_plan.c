/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A loop's body in SSA becomes a step that writes its results where the loop has them.
 *
 * A result is computed in its place where the operation that makes it may write there; else a copy
 * brings it there: of what is no result of an operation of its own at the beginning of the step, of
 * carries at its end, when nothing reads the old one any more. */
#include "passes/memplan/loop_plan.h"

#include "ir/strided_view.h"

typedef struct Stepper {
    LoopPlan *p;
    Graph *g;
    const Node *loop;
    LoopShape shape;
    VEC(NodeId) front, back; /* copies, before and behind the body's operations */
} Stepper;

static ValueId add_storage(Stepper *s, const Type *type, int i)
{
    AttrList none = {0};
    return graph_add_source(s->g, OP_buffer, *type, &none, pool_printf(s->g->pool, "$result.%d", i),
                            s->loop->loc);
}

/* A copy; `to`: the storage that it is written to, or VALUE_NONE. */
static ValueId add_copy(Stepper *s, ValueId from, ValueId to, bool front)
{
    Type t = *value_type(s->g, from);
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_shape, t.dim, t.rank);
    ValueId v = graph_add(s->g, OP_broadcast, &from, 1, &attrs, NULL, s->loop->loc);
    graph_value(s->g, v)->writes = to;
    NodeId made = graph_value(s->g, v)->def;
    s->g->order.len--; /* where it runs is decided at the end */
    if (front)
        vec_push(s->g->pool, &s->front, made);
    else
        vec_push(s->g->pool, &s->back, made);
    return v;
}

static bool is_computed(const Stepper *s, ValueId v)
{
    const Node *n = value_node(s->g, v);
    return node_runs(n) && !node_is_source(n) && !node_is_view(n) &&
           graph_value(s->g, v)->writes == VALUE_NONE;
}

/* Whether the operation that makes v may write it over carry `old`: nothing reads that one later.
 */
static bool may_replace(const Stepper *s, ValueId v, ValueId old)
{
    const Graph *g = s->g;
    const Node *maker = value_node(g, v);
    bool after = false;
    if (maker->n_out != 1)
        return false;
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *n = graph_node(g, g->order.data[k]);
        for (int i = 0; i < n->n_in; i++) {
            if (value_root(g, n->in[i]) != old || node_is_view(n))
                continue;
            if (after || (n == maker && !node_may_overwrite(g, n, 0, i)))
                return false;
        }
        after |= n == maker;
    }
    return true;
}

/* An operation of the body that some outputs share writes to the first of them. */
static void place_result(Stepper *s, int i)
{
    ValueId v = s->g->outputs.data[i].value;
    const Type type = *value_type(s->g, v);
    ValueId storage = add_storage(s, &type, i);
    s->p->result[i] = storage;
    if (is_computed(s, v))
        graph_value(s->g, v)->writes = storage;
    else
        add_copy(s, v, storage, value_node(s->g, value_root(s->g, v))->op == OP_input);
}

static void place_carry(Stepper *s, int i)
{
    ValueId v = s->g->outputs.data[i].value, storage = s->p->input[i];
    if (value_root(s->g, v) == storage && !node_is_view(value_node(s->g, v)))
        return; /* it stays as it is */
    if (is_computed(s, v) && may_replace(s, v, storage)) {
        graph_value(s->g, v)->writes = storage;
        return;
    }
    if (node_is_source(
            value_node(s->g, value_root(s->g, v)))) /* another carry may take its place */
        v = add_copy(s, v, VALUE_NONE, true);
    add_copy(s, v, storage, false);
}

/* Sources, copies of what is there at the beginning, the body, copies at the end. */
static void put_in_order(Stepper *s)
{
    Graph *g = s->g;
    VEC(NodeId) order = {0};
    for (int round = 0; round < 2; round++) {
        for (size_t k = 0; k < g->order.len; k++) {
            NodeId id = g->order.data[k];
            if (node_is_source(graph_node(g, id)) == (round == 0))
                vec_push(g->pool, &order, id);
        }
        for (size_t k = 0; round == 0 && k < s->front.len; k++)
            vec_push(g->pool, &order, s->front.data[k]);
    }
    for (size_t k = 0; k < s->back.len; k++)
        vec_push(g->pool, &order, s->back.data[k]);
    g->order.len = 0;
    for (size_t k = 0; k < order.len; k++)
        vec_push(g->pool, &g->order, order.data[k]);
    g->outputs.len = 0;
}

LoopPlan *loop_plan(Pool *pool, const Node *loop)
{
    LoopPlan *p = POOL_NEW(pool, LoopPlan);
    Stepper s = {
        .p = p, .g = graph_copy(pool, loop->body), .loop = loop, .shape = loop_shape(loop)};
    size_t n_out = s.g->outputs.len;
    p->step = s.g;
    p->input = POOL_ARRAY(pool, (size_t)loop->n_in + 1, ValueId);
    p->result = POOL_ARRAY(pool, n_out + 1, ValueId);
    for (int i = 0; i < loop->n_in; i++)
        p->input[i] = loop_body_input(s.g, i);
    for (int i = s.shape.carries; i < (int)n_out; i++)
        place_result(&s, i);
    for (int i = 0; i < s.shape.carries; i++) {
        p->result[i] = p->input[i];
        place_carry(&s, i);
    }
    put_in_order(&s);
    for (int i = 0; i < loop->n_in; i++)
        value_node(s.g, p->input[i])->op = OP_buffer;
    p->plan = memplan_graph(pool, s.g, MEMPLAN_FINAL, NULL);
    p->arena_bytes = p->plan->arena_bytes - p->plan->persistent_bytes;
    return p;
}
