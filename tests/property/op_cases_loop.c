/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random loops; see op_cases.h. */
#include "tests/property/op_cases.h"

#include "ir/loop.h"

static const Loc nowhere = {0};

static ValueId body_input(Graph *body, Type t)
{
    AttrList none = {0};
    return graph_add_source(body, OP_input, t, &none, NULL, nowhere);
}

static ValueId point(Graph *body, OpKind op, ValueId a, ValueId b)
{
    return graph_add(body, op, (const ValueId[]){a, b}, b == VALUE_NONE ? 1 : 2, NULL, NULL,
                     nowhere);
}

/* a, b, x, w -> a' = tanh(a @ w + x) + b / 2 and b', which may be a itself; results of the kinds
 * that there are: computed, a carry as it was, an element of a slice, a view, the same twice. */
static void add_cell(OpCase *c, Graph *body, const ValueId *v, int64_t width)
{
    AttrList shape = {0};
    attrs_ints(&shape, ATTR_shape, (const int64_t[]){width, value_type(body, v[0])->dim[0]}, 2);
    AttrList half = {0};
    attrs_float(&half, ATTR_value, 0.5);
    ValueId factor = graph_add_source(body, OP_const, type_scalar(DTYPE_F32), &half, NULL, nowhere);
    ValueId z = point(body, OP_matmul, v[0], v[3]);
    ValueId h = point(body, OP_tanh, point(body, OP_add, z, v[2]), VALUE_NONE);
    ValueId a = point(body, OP_add, h, point(body, OP_mul, v[1], factor));
    ValueId flat = graph_add(body, OP_reshape, &h, 1, &shape, NULL, nowhere);
    const ValueId results[] = {h, v[0], v[2], flat, a, h};
    graph_add_output(body, "a", a);
    graph_add_output(body, "b",
                     op_coin(c)   ? v[0]
                     : op_coin(c) ? v[1]
                                  : point(body, OP_mul, h, v[2]));
    for (int i = 0, n = (int)op_int(c, 1, 6); i < n; i++)
        graph_add_output(body, pool_printf(c->pool, "r%d", i), results[op_int(c, 0, 5)]);
}

/* A loop over the cell, perhaps around another loop over it. */
static Graph *loop_body(OpCase *c, const Type *type, int depth)
{
    Graph *body = graph_new(c->pool, "body");
    ValueId v[4];
    body->kind = "body";
    for (int i = 0; i < 4; i++)
        v[i] = body_input(body, type[i]);
    int64_t width = type[0].dim[1];
    if (depth == 0) {
        add_cell(c, body, v, width);
        return body;
    }
    /* The inner loop goes over x and x twice more. */
    Type rows = DIMS(3, type[2].dim[0], type[2].dim[1]);
    AttrList row = {0}, axis = {0};
    attrs_ints(&row, ATTR_shape, (const int64_t[]){1, rows.dim[1], rows.dim[2]}, 3);
    attrs_int(&axis, ATTR_axis, 0);
    ValueId one = graph_add(body, OP_reshape, &v[2], 1, &row, NULL, nowhere);
    ValueId x =
        graph_add(body, OP_concat, (const ValueId[]){one, one, one}, 3, &axis, NULL, nowhere);
    LoopShape s = {.steps = 3, .carries = 2, .slices = 1, .reverse = op_coin(c)};
    const ValueId in[] = {v[0], v[1], x, v[3]};
    NodeId inner = graph_add_loop(body, in, 4, &s, loop_body(c, type, depth - 1), NULL, nowhere);
    const Node *n = graph_node(body, inner);
    for (int i = 0; i < n->n_out; i++)
        graph_add_output(body, pool_printf(c->pool, "o%d", i), n->out[i]);
    return body;
}

void op_loop(OpCase *c)
{
    int64_t n = op_int(c, 1, 3), width = op_int(c, 1, 4), steps = op_int(c, 1, 4);
    const Type type[4] = {DIMS(n, width), DIMS(n, width), DIMS(n, width), DIMS(width, width)};
    c->bf16 = 0; /* a body computes with the types that it has */
    ValueId a = op_floats(c, type[0], -1, 1), b = op_floats(c, type[1], -1, 1);
    ValueId x = op_floats(c, DIMS(steps, n, width), -1, 1), w = op_floats(c, type[3], -1, 1);
    LoopShape s = {.steps = steps, .carries = 2, .slices = 1, .reverse = op_coin(c)};
    const ValueId in[] = {a, b, x, w};
    c->node =
        graph_add_loop(c->g, in, 4, &s, loop_body(c, type, (int)op_int(c, 0, 1)), "%out", nowhere);
    const Node *loop = graph_node(c->g, c->node);
    c->out = loop->out[op_int(c, 0, loop->n_out - 1)];
}
