/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The gradient of a loop is a loop in the other direction: its body computes the products with a
 * step's Jacobian.  What it reads of the step, the loop keeps as further results: all but what
 * element-wise operations make of these, or, with the attribute `again`, only what the step began
 * with, from which the body computes the rest again.  What the step reads each time (weights) has
 * its gradient added up in a carry. */
#include "ir/loop.h"
#include "passes/autodiff/autodiff.h"
#include "passes/autodiff/grad.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

#include <string.h>

/* What an input of the backward loop is. */
typedef enum InputKind {
    GRADIENT_CARRY, /* of carry i of the loop */
    SUM_CARRY,      /* of constant i */
    STATE_SLICE,    /* what carry i was when a step began */
    INPUT_SLICE,    /* slice i of the loop */
    GRADIENT_SLICE, /* of result i */
    KEPT_SLICE,     /* value i of the loop's body */
    CONSTANT,       /* constant i of the loop */
} InputKind;

typedef struct LoopInput {
    InputKind kind;
    int i;         /* among the loop's inputs or results */
    ValueId inner; /* in the body of the backward loop */
} LoopInput;

typedef struct LoopGradient {
    GradContext *c;
    const Node *loop;
    LoopShape shape;
    Graph *body;           /* of the backward loop */
    ValueId *map;          /* value of the loop's body -> its value in `body` */
    NodeId first_product;  /* nodes of `body` from here on are no copies of the step's */
    VEC(LoopInput) inputs; /* in the order of a loop's */
    Pool *scratch;
} LoopGradient;

static bool is_float(const Graph *g, ValueId v)
{
    return dtype_is_float(value_type(g, v)->dtype);
}

static ValueId add_input(LoopGradient *l, InputKind kind, int i, const Type *type, const char *name)
{
    AttrList none = {0};
    ValueId v = graph_add_source(l->body, OP_input, *type, &none, name, l->loop->loc);
    vec_push(l->scratch, &l->inputs, (LoopInput){kind, i, v});
    return v;
}

static ValueId body_input_like(LoopGradient *l, InputKind kind, int i, const char *prefix)
{
    ValueId v = loop_body_input(l->loop->body, i);
    const Value *old = graph_value(l->loop->body, v);
    return add_input(l, kind, i, &old->type,
                     pool_printf(l->scratch, "%%%s%s", prefix, old->name + 1));
}

/* Carries, slices, constants: the order of a loop's inputs. */
static void add_inputs(LoopGradient *l)
{
    const Graph *from = l->loop->body;
    const LoopShape s = l->shape;
    int first_constant = s.carries + s.slices;
    for (int i = 0; i < s.carries; i++)
        if (is_float(from, loop_body_input(from, i)))
            body_input_like(l, GRADIENT_CARRY, i, "d.");
    for (int i = first_constant; i < l->loop->n_in; i++)
        if (l->c->wanted[i])
            body_input_like(l, SUM_CARRY, i, "sum.d.");
    for (int i = 0; i < s.carries; i++)
        l->map[loop_body_input(from, i)] = body_input_like(l, STATE_SLICE, i, "");
    for (int i = s.carries; i < first_constant; i++)
        l->map[loop_body_input(from, i)] = body_input_like(l, INPUT_SLICE, i, "");
    for (int i = s.carries; i < s.carries + s.results; i++)
        if (l->c->dout[i] != VALUE_NONE)
            add_input(l, GRADIENT_SLICE, i, value_type(from, from->outputs.data[i].value),
                      pool_printf(l->scratch, "%%d.%s", from->outputs.data[i].name));
    for (int i = first_constant; i < l->loop->n_in; i++)
        l->map[loop_body_input(from, i)] = body_input_like(l, CONSTANT, i, "");
}

static void copy_step(LoopGradient *l)
{
    const Graph *from = l->loop->body;
    for (size_t k = 0; k < from->order.len; k++) {
        const Node *n = graph_node(from, from->order.data[k]);
        if (n->op == OP_input)
            continue;
        const char *name = graph_value(from, n->out[0])->name;
        if (n->op == OP_const) {
            AttrList attrs = {.n = n->n_attr};
            memcpy(attrs.items, n->attr, (size_t)n->n_attr * sizeof *n->attr);
            l->map[n->out[0]] = graph_add_source(l->body, n->op, *value_type(from, n->out[0]),
                                                 &attrs, name, n->loc);
            continue;
        }
        ValueId *in = POOL_ARRAY(l->scratch, (size_t)n->n_in + 1, ValueId);
        for (int i = 0; i < n->n_in; i++)
            in[i] = l->map[n->in[i]];
        const Node *copy = value_node(l->body, graph_add_like(l->body, n, in, NULL, name));
        for (int i = 0; i < n->n_out; i++)
            l->map[n->out[i]] = copy->out[i];
    }
}

static ValueId inner_of(const LoopGradient *l, InputKind kind, int i)
{
    for (size_t k = 0; k < l->inputs.len; k++)
        if (l->inputs.data[k].kind == kind && l->inputs.data[k].i == i)
            return l->inputs.data[k].inner;
    return VALUE_NONE;
}

/* Zeros of v's type. */
static ValueId zeros_like(Graph *g, ValueId v, Loc loc)
{
    Type t = *value_type(g, v);
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_shape, t.dim, t.rank);
    attrs_float(&attrs, ATTR_value, 0);
    attrs_string(&attrs, ATTR_dtype, dtype_name(t.dtype));
    return graph_add(g, OP_full, NULL, 0, &attrs, NULL, loc);
}

static const char *output_name(LoopGradient *l)
{
    return pool_printf(l->body->pool, "out%zu", l->body->outputs.len);
}

/* Appends the products, and makes the body's outputs of them: those of the carries, then of the
 * slices whose gradient is wanted. */
static const char *differentiate(LoopGradient *l)
{
    const Graph *from = l->loop->body;
    const LoopShape s = l->shape;
    int n_in = l->loop->n_in, n_results = s.carries + s.results;
    ValueId *result = POOL_ARRAY(l->scratch, (size_t)n_results + 1, ValueId);
    ValueId *seed = POOL_ARRAY(l->scratch, (size_t)n_results + 1, ValueId);
    for (int i = 0; i < n_results; i++) {
        result[i] = l->map[from->outputs.data[i].value];
        seed[i] = inner_of(l, i < s.carries ? GRADIENT_CARRY : GRADIENT_SLICE, i);
    }
    ValueId *wrt = POOL_ARRAY(l->scratch, (size_t)n_in + 1, ValueId);
    ValueId *grad = POOL_ARRAY(l->scratch, (size_t)n_in + 1, ValueId);
    int *at = POOL_ARRAY(l->scratch, (size_t)n_in + 1, int), n = 0;
    for (int i = 0; i < n_in; i++) {
        bool carry = i < s.carries;
        at[i] = -1;
        if (carry ? inner_of(l, GRADIENT_CARRY, i) == VALUE_NONE : !l->c->wanted[i])
            continue;
        at[i] = n;
        wrt[n] = l->map[loop_body_input(from, i)];
        grad[n++] = inner_of(l, SUM_CARRY, i);
    }
    const char *refused = autodiff_products(l->body, result, seed, n_results, wrt, n, grad);
    for (int pass = 0; pass < 3; pass++) /* carries, constants' sums, slices */
        for (int i = 0; i < n_in; i++) {
            int kind = i < s.carries ? 0 : i < s.carries + s.slices ? 2 : 1;
            if (at[i] < 0 || kind != pass)
                continue;
            ValueId v = grad[at[i]];
            graph_add_output(l->body, output_name(l),
                             v == VALUE_NONE ? zeros_like(l->body, wrt[at[i]], l->loop->loc) : v);
        }
    return refused;
}

/* Takes what nothing needs out of the body, and of its inputs those that are no carries. */
static void drop_unused(LoopGradient *l)
{
    Graph *body = l->body;
    pass_dce(&(PassContext){.graph = body, .pool = l->scratch});
    const int *uses = count_uses(body, l->scratch);
    VEC(NodeId) order = {0};
    size_t n_inputs = 0;
    for (size_t k = 0; k < l->inputs.len; k++) {
        const LoopInput in = l->inputs.data[k];
        if (in.kind > SUM_CARRY && !uses[in.inner])
            continue;
        l->inputs.data[n_inputs++] = in;
        vec_push(l->scratch, &order, graph_value(body, in.inner)->def);
    }
    l->inputs.len = n_inputs;
    for (size_t k = 0; k < body->order.len; k++)
        if (graph_node(body, body->order.data[k])->op != OP_input)
            vec_push(l->scratch, &order, body->order.data[k]);
    memcpy(body->order.data, order.data, order.len * sizeof *order.data);
    body->order.len = order.len;
}

/* ---- what the loop keeps ---- */

/* Loops in the step keep more for their own gradients: those in the loop's body, too. */
static void keep_in_loops(LoopGradient *l)
{
    Graph *from = l->loop->body;
    for (size_t k = 0; k < from->order.len; k++) {
        NodeId id = from->order.data[k];
        if (!node_is_loop(graph_node(from, id)))
            continue;
        const Node *copy = value_node(l->body, l->map[graph_node(from, id)->out[0]]);
        int before = graph_node(from, id)->n_out;
        if (copy->n_out == before)
            continue;
        loop_take_results(from, id, copy->body);
        ValueId *map = POOL_ARRAY(l->scratch, from->values.len + 1, ValueId);
        memcpy(map, l->map, (from->values.len - (size_t)(copy->n_out - before)) * sizeof *map);
        for (int i = before; i < copy->n_out; i++)
            map[graph_node(from, id)->out[i]] = copy->out[i];
        l->map = map;
    }
}

/* By value of the backward body: its products, or its results, read it. */
static bool *read_by_products(const LoopGradient *l)
{
    const Graph *body = l->body;
    bool *read = POOL_ARRAY(l->scratch, body->values.len + 1, bool);
    for (size_t i = 0; i < body->outputs.len; i++)
        read[body->outputs.data[i].value] = true;
    for (size_t k = 0; k < body->order.len; k++) {
        const Node *n = graph_node(body, body->order.data[k]);
        for (int i = 0; i < n->n_in && body->order.data[k] >= l->first_product; i++)
            read[n->in[i]] = true;
    }
    return read;
}

/* What of a step is kept, by value of the backward body. */
typedef struct Kept {
    const Graph *body;
    double *price; /* bytes to keep more, so that the body has the value */
    bool *again;   /* it is computed again */
    bool *needed, *is_kept;
} Kept;

static bool is_computed_again(const Kept *k, const Node *n, ValueId v, double inputs)
{
    OpClass class = op_table[n->op].op_class;
    if (n->n_in == 0 || node_is_view(n) || n->op == OP_random ||
        value_type(k->body, v)->rank == TYPE_MAX_RANK)
        return true;
    return class == OP_CLASS_POINT && inputs < (double)type_bytes(value_type(k->body, v));
}

static void need(Kept *k, ValueId v)
{
    const Node *n = value_node(k->body, v);
    if (k->needed[v])
        return;
    k->needed[v] = true;
    k->is_kept[v] = !k->again[v];
    if (k->is_kept[v])
        k->price[v] = 0;
    for (int i = 0; i < n->n_in && k->again[v]; i++)
        need(k, n->in[i]);
}

/* All that is computed in a step, but element-wise results of less: reading them takes more time
 * than to compute them, in a kernel that reads their operands anyway. */
static const bool *choose_kept(const LoopGradient *l)
{
    const Graph *body = l->body;
    size_t n_values = body->values.len + 1;
    Kept kept = {body, POOL_ARRAY(l->scratch, n_values, double),
                 POOL_ARRAY(l->scratch, n_values, bool), POOL_ARRAY(l->scratch, n_values, bool),
                 POOL_ARRAY(l->scratch, n_values, bool)};
    const bool *read = read_by_products(l);
    for (size_t k = 0; k < body->order.len && body->order.data[k] < l->first_product; k++) {
        const Node *n = graph_node(body, body->order.data[k]);
        double inputs = 0;
        for (int i = 0; i < n->n_in; i++)
            inputs += kept.price[n->in[i]];
        for (int i = 0; i < n->n_out; i++) {
            ValueId v = n->out[i];
            kept.again[v] = is_computed_again(&kept, n, v, inputs);
            kept.price[v] = kept.again[v] ? inputs : (double)type_bytes(value_type(body, v));
            if (read[v])
                need(&kept, v);
        }
    }
    return kept.is_kept;
}

static void replace_in_body(Graph *body, ValueId old, ValueId by)
{
    for (size_t k = 0; k < body->order.len; k++) {
        Node *n = graph_node(body, body->order.data[k]);
        for (int i = 0; i < n->n_in; i++)
            n->in[i] = n->in[i] == old ? by : n->in[i];
    }
    for (size_t i = 0; i < body->outputs.len; i++)
        if (body->outputs.data[i].value == old)
            body->outputs.data[i].value = by;
}

/* What is kept of a step becomes slices: what computed it again has no use any more. */
static void keep_values(LoopGradient *l)
{
    const Graph *from = l->loop->body;
    keep_in_loops(l);
    const bool *is_kept = choose_kept(l);
    size_t n_constants = 0;
    while (n_constants < l->inputs.len &&
           l->inputs.data[l->inputs.len - 1 - n_constants].kind == CONSTANT)
        n_constants++;
    size_t first = l->inputs.len - n_constants;
    LoopInput *constants = POOL_ARRAY(l->scratch, n_constants + 1, LoopInput);
    memcpy(constants, l->inputs.data + first, n_constants * sizeof *constants);
    l->inputs.len = first;
    for (size_t k = 0; k < from->order.len; k++) {
        const Node *n = graph_node(from, from->order.data[k]);
        for (int i = 0; i < n->n_out; i++) {
            ValueId copy = l->map[n->out[i]];
            if (!is_kept[copy])
                continue;
            const Value *v = graph_value(from, n->out[i]);
            replace_in_body(l->body, copy,
                            add_input(l, KEPT_SLICE, (int)n->out[i], &v->type,
                                      pool_printf(l->scratch, "%%%s", v->name + 1)));
        }
    }
    for (size_t k = 0; k < n_constants; k++)
        vec_push(l->scratch, &l->inputs, constants[k]);
}

/* A value of the loop's body, of every step, for the gradient alone. */
static ValueId steps_of(LoopGradient *l, ValueId inner)
{
    NodeId id = graph_value(l->c->graph, l->loop->out[0])->def;
    return loop_add_results(l->c->graph, id, &inner, 1);
}

/* As a result of the loop where it is one anyway, which what stands behind the loop mostly keeps
 * for its own gradient. */
static ValueId result_or_steps_of(LoopGradient *l, ValueId inner)
{
    for (int r = l->shape.carries; r < l->shape.carries + l->shape.results; r++)
        if (l->loop->body->outputs.data[r].value == inner)
            return l->loop->out[r];
    return steps_of(l, inner);
}

/* Once, where the loop reads a value as two of its constants. */
static bool continues_sum(const GradContext *c, int i)
{
    for (int k = 0; k < c->node->n_in; k++)
        if (k != i && c->node->in[k] == c->node->in[i])
            return false;
    return c->so_far[i] != VALUE_NONE &&
           type_equal(value_type(c->graph, c->so_far[i]), value_type(c->graph, grad_in(c, i)));
}

static ValueId outer_input(LoopGradient *l, const LoopInput *in)
{
    GradContext *c = l->c;
    Type t;
    switch (in->kind) {
    case GRADIENT_CARRY:
        if (c->dout[in->i] != VALUE_NONE)
            return c->dout[in->i];
        t = grad_type(c, c->node->out[in->i]);
        return grad_filled(c, &t, 0);
    case SUM_CARRY: /* goes on with the sum, in the order of a loop that is written out */
        if (continues_sum(c, in->i)) {
            c->has_so_far[in->i] = true;
            return c->so_far[in->i];
        }
        t = grad_in_type(c, in->i);
        return grad_filled(c, &t, 0);
    case STATE_SLICE:
        return steps_of(l, loop_body_input(l->loop->body, in->i));
    case KEPT_SLICE:
        return result_or_steps_of(l, (ValueId)in->i);
    case GRADIENT_SLICE:
        return c->dout[in->i];
    case INPUT_SLICE:
    case CONSTANT:
        break;
    }
    return grad_in(c, in->i);
}

static void set_gradients(LoopGradient *l, NodeId backward)
{
    const Node *n = graph_node(l->c->graph, backward);
    int out = 0;
    for (size_t k = 0; k < l->inputs.len; k++) { /* carries come first, in the order of results */
        const LoopInput *in = &l->inputs.data[k];
        if (in->kind > SUM_CARRY)
            break;
        if (l->c->wanted[in->i])
            l->c->din[in->i] = n->out[out];
        out++;
    }
    for (int i = l->shape.carries; i < l->shape.carries + l->shape.slices; i++)
        if (l->c->wanted[i])
            l->c->din[i] = n->out[out++];
}

void grad_loop(GradContext *c)
{
    Pool *scratch = pool_new_child(c->graph->pool);
    LoopGradient l = {.c = c,
                      .loop = c->node,
                      .shape = loop_shape(c->node),
                      .body = graph_new(c->graph->pool, "body"),
                      .map = POOL_ARRAY(scratch, c->node->body->values.len + 1, ValueId),
                      .scratch = scratch};
    l.body->kind = "body";
    add_inputs(&l);
    copy_step(&l);
    l.first_product = (NodeId)l.body->nodes.len;
    c->refused = differentiate(&l);
    if (!node_flag(c->node, ATTR_again))
        keep_values(&l);
    drop_unused(&l);
    LoopShape shape = {.steps = l.shape.steps, .reverse = !l.shape.reverse};
    ValueId *in = POOL_ARRAY(scratch, l.inputs.len + 1, ValueId);
    for (size_t k = 0; k < l.inputs.len; k++) {
        in[k] = outer_input(&l, &l.inputs.data[k]);
        shape.carries += l.inputs.data[k].kind <= SUM_CARRY;
        shape.slices += l.inputs.data[k].kind > SUM_CARRY && l.inputs.data[k].kind < CONSTANT;
    }
    NodeId backward = graph_add_loop(c->graph, in, (int)l.inputs.len, &shape, l.body,
                                     pool_printf(scratch, "%s.loop", c->prefix), c->node->loc);
    set_gradients(&l, backward);
    pool_free(scratch);
}
