/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The shape rule of loops. */
#include "ir/loop.h"
#include "ir/shape_rules.h"

#include <string.h>

/* Element of [steps, ..]. */
static Type slice_type(const Type *whole)
{
    Type t = {.dtype = whole->dtype, .rank = whole->rank - 1};
    memcpy(t.dim, whole->dim + 1, (size_t)t.rank * sizeof *t.dim);
    return t;
}

/* What the body's input i has to be: an input of the loop, or an element of it. */
static bool loop_input(const Graph *g, const Node *loop, int i, Type *out, ShapeError *err)
{
    LoopShape s = loop_shape(loop);
    const Type *t = value_type(g, loop->in[i]);
    *out = *t;
    if (i < s.carries || i >= s.carries + s.slices)
        return true;
    if (t->rank < 1 || t->dim[0] != s.steps)
        return shape_fail(err, "E101", i, "loop: %lld steps over %s", (long long)s.steps, SHOW(t));
    *out = slice_type(t);
    return true;
}

static bool loop_inputs(const Graph *g, const Node *loop, ShapeError *err)
{
    const Graph *body = loop->body;
    int seen = 0;
    for (size_t k = 0; k < body->order.len; k++) {
        const Node *n = graph_node(body, body->order.data[k]);
        Type wanted;
        if (n->op != OP_input)
            continue;
        if (seen < loop->n_in) {
            if (!loop_input(g, loop, seen, &wanted, err))
                return false;
            if (!type_equal(&wanted, value_type(body, n->out[0])))
                return shape_fail(err, "E101", seen, "loop: the body takes %s, its input is %s",
                                  SHOW(value_type(body, n->out[0])), SHOW(&wanted));
        }
        seen++;
    }
    return seen == loop->n_in ||
           shape_fail(err, "E109", -1, "loop: the body has %d inputs, the node %d", seen,
                      loop->n_in);
}

SHAPE_RULE(loop)
{
    const Graph *body = node->body;
    LoopShape s = loop_shape(node);
    if (!body || s.steps < 1 || s.carries < 0 || s.slices < 0 ||
        s.carries + s.slices > node->n_in || (size_t)s.carries > body->outputs.len)
        return shape_fail(err, "E110", -1, "loop needs steps, and a body with a result a carry");
    if (!loop_inputs(g, node, err))
        return false;
    *n_out = (int)body->outputs.len;
    for (int i = 0; i < *n_out; i++) {
        const Type *t = value_type(body, body->outputs.data[i].value);
        out[i] = *t;
        if (i < s.carries && !type_equal(t, value_type(g, node->in[i])))
            return shape_fail(err, "E101", i, "loop: a carry begins as %s and goes on as %s",
                              SHOW(value_type(g, node->in[i])), SHOW(t));
        if (i < s.carries)
            continue;
        if (t->rank == TYPE_MAX_RANK)
            return shape_fail(err, "E105", -1,
                              "loop: a result %s of a step has no room for the steps", SHOW(t));
        memmove(out[i].dim + 1, t->dim, (size_t)t->rank * sizeof *t->dim);
        out[i].dim[0] = s.steps;
        out[i].rank = t->rank + 1;
    }
    return true;
}
