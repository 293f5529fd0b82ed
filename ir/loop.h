/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Loops: nodes of the operation `loop`, which the language calls scan. */
#ifndef SCRIMP_IR_LOOP_H
#define SCRIMP_IR_LOOP_H

#include "ir/graph.h"

/* How deep loops of a model nest; checkpoints (passes/loop_checkpoints.h) add two levels, and the
 * groups in their bodies are one more. */
enum { LOOP_MAX_NESTING = 4, LOOP_MAX_LEVELS = LOOP_MAX_NESTING + 2 };

/* Inputs and results of a loop.  The body's inputs are `input` nodes in this order: carries,
 * elements of slices, constants; its outputs: the next carries, elements of results. */
typedef struct LoopShape {
    int64_t steps;
    int carries, slices, constants, results;
    bool reverse; /* step k works on element steps - 1 - k */
} LoopShape;

static inline bool node_is_loop(const Node *n)
{
    return n->op == OP_loop;
}

static inline LoopShape loop_shape(const Node *n)
{
    LoopShape s = {.steps = node_int(n, ATTR_steps, 0),
                   .carries = (int)node_int(n, ATTR_carries, 0),
                   .slices = (int)node_int(n, ATTR_slices, 0),
                   .reverse = node_flag(n, ATTR_reverse)};
    s.constants = n->n_in - s.carries - s.slices;
    s.results = n->body ? (int)n->body->outputs.len - s.carries : 0;
    return s;
}

/* The body's inputs, in order. */
static inline ValueId loop_body_input(const Graph *body, int i)
{
    for (size_t k = 0; k < body->order.len; k++) {
        const Node *n = graph_node(body, body->order.data[k]);
        if (n->op == OP_input && i-- == 0)
            return n->out[0];
    }
    return VALUE_NONE;
}

/* Adds a loop over this body, which it takes over.  Returns NODE_NONE and *err where it does not
 * fit; name as in graph_try_add. */
NodeId graph_try_add_loop(Graph *g, const ValueId *in, int n_in, const LoopShape *shape,
                          Graph *body, const char *name, Loc loc, ShapeError *err);
NodeId graph_add_loop(Graph *g, const ValueId *in, int n_in, const LoopShape *shape, Graph *body,
                      const char *name, Loc loc);
/* Takes results that are no carries away, from the node and its body. */
void loop_keep_results(Graph *g, NodeId loop, const bool *keep);
/* Makes results of values of a loop's body that are none yet; returns the first new result of the
 * node. */
ValueId loop_add_results(Graph *g, NodeId loop, const ValueId *of_body, int n);
/* Gives a loop the body of another, which computes the same and has more results behind those of
 * this one, and these results. */
void loop_take_results(Graph *g, NodeId loop, const Graph *body);

#endif
