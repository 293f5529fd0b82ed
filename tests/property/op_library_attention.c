/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "op_library_attention.h"

#include <math.h>

typedef struct Sizes {
    int64_t batch, heads, rows, keys, width, value_width;
} Sizes;

typedef struct Nodes {
    ValueId q, k, v, out, max, sum;
    AttrList attrs;
} Nodes;

static Sizes random_sizes(OpCase *c)
{
    Sizes s = {.batch = op_int(c, 1, 3)};
    s.heads = op_int(c, 1, 4);
    s.rows = op_int(c, 1, 70);
    s.keys = op_coin(c) ? s.rows : op_int(c, 1, 140);
    s.width = 8 * op_int(c, 1, 5);
    s.value_width = s.keys == s.rows || op_coin(c) ? s.width : 8 * op_int(c, 1, 16);
    return s;
}

static ValueId add(OpCase *c, OpKind op, const ValueId *in, int n, const AttrList *attrs)
{
    return graph_add(c->g, op, in, n, attrs, NULL, (Loc){0});
}

static ValueId reshape(OpCase *c, ValueId v, Type to)
{
    AttrList attrs = {.n = 0};
    attrs_ints(&attrs, ATTR_shape, to.dim, to.rank);
    return add(c, OP_reshape, &v, 1, &attrs);
}

/* By rows what is by heads, and the other way round. */
static ValueId turn(OpCase *c, ValueId v)
{
    static const int64_t perm[] = {0, 2, 1, 3};
    AttrList attrs = {.n = 0};
    attrs_ints(&attrs, ATTR_perm, perm, 4);
    return add(c, OP_transpose, &v, 1, &attrs);
}

/* [batch, rows, heads * width], a piece of what has more elements in a row: of whole heads, or of
 * any number. */
static ValueId piece(OpCase *c, const Sizes *s, int64_t rows, int64_t width)
{
    const int64_t unit = op_coin(c) ? width : 1, n = s->heads * width;
    const int64_t before = unit * op_int(c, 0, 3), behind = unit * op_int(c, 1, 3);
    const ValueId whole = op_normal(c, DIMS(s->batch, rows, before + n + behind));
    const int64_t start[] = {0, 0, before}, limit[] = {s->batch, rows, before + n};
    AttrList attrs = {.n = 0};
    attrs_ints(&attrs, ATTR_start, start, 3);
    attrs_ints(&attrs, ATTR_limit, limit, 3);
    return add(c, OP_slice, &whole, 1, &attrs);
}

/* Queries, keys or values by heads, however a model comes to have them. */
static ValueId operand(OpCase *c, const Sizes *s, int64_t rows, int64_t width)
{
    const Type by_rows = DIMS(s->batch, rows, s->heads, width);
    switch (op_int(c, 0, 3)) {
    case 0:
        return op_normal(c, DIMS(s->batch, s->heads, rows, width));
    case 1:
        return turn(c, op_normal(c, by_rows));
    default:
        return turn(c, reshape(c, piece(c, s, rows, width), by_rows));
    }
}

/* Piece number i of three. */
static ValueId third(OpCase *c, const Sizes *s, ValueId whole, int i)
{
    const int64_t n = s->heads * s->width, start[] = {0, 0, i * n};
    const int64_t limit[] = {s->batch, s->rows, (i + 1) * n};
    AttrList attrs = {.n = 0};
    attrs_ints(&attrs, ATTR_start, start, 3);
    attrs_ints(&attrs, ATTR_limit, limit, 3);
    return turn(c, reshape(c, add(c, OP_slice, &whole, 1, &attrs),
                           DIMS(s->batch, s->rows, s->heads, s->width)));
}

static void make_operands(OpCase *c, const Sizes *s, Nodes *n)
{
    if (s->keys == s->rows && s->value_width == s->width) {
        const ValueId whole = op_normal(c, DIMS(s->batch, s->rows, 3 * s->heads * s->width));
        n->q = third(c, s, whole, 0);
        n->k = third(c, s, whole, 1);
        n->v = third(c, s, whole, 2);
    } else {
        n->q = operand(c, s, s->rows, s->width);
        n->k = operand(c, s, s->keys, s->width);
        n->v = operand(c, s, s->keys, s->value_width);
    }
}

static Nodes forward(OpCase *c, const Sizes *s)
{
    Nodes n = {.attrs = {.n = 0}};
    c->bf16 = UINT32_MAX; /* all inputs */
    make_operands(c, s, &n);
    attrs_float(&n.attrs, ATTR_scale, op_uniform(c, 0.5, 1) / sqrt((double)s->width));
    if (op_coin(c))
        attrs_int(&n.attrs, ATTR_causal, 1);
    n.out = add(c, OP_attention, (ValueId[]){n.q, n.k, n.v}, 3, &n.attrs);
    c->node = graph_value(c->g, n.out)->def;
    n.max = graph_node(c->g, c->node)->out[1];
    n.sum = graph_node(c->g, c->node)->out[2];
    return n;
}

void library_attention(OpCase *c)
{
    const Sizes s = random_sizes(c);
    const ValueId out = forward(c, &s).out;
    c->out = op_coin(c) ? turn(c, out) : out;
}

void library_statistics(OpCase *c)
{
    const Sizes s = random_sizes(c);
    const Nodes n = forward(c, &s);
    const ValueId log = add(c, OP_log, &n.sum, 1, NULL);
    c->out = add(c, OP_add, (ValueId[]){n.max, log}, 2, NULL);
}

/* As one long vector. */
static ValueId flat(OpCase *c, ValueId v)
{
    return reshape(c, v, DIMS(type_elements(value_type(c->g, v))));
}

static ValueId joined(OpCase *c, const ValueId *v, int n, int64_t axis)
{
    AttrList along = {.n = 0};
    attrs_int(&along, ATTR_axis, axis);
    return add(c, OP_concat, v, n, &along);
}

/* By heads, by rows, or both. */
static ValueId anyhow(OpCase *c, ValueId v)
{
    if (op_coin(c))
        return flat(c, v);
    const ValueId turned = flat(c, turn(c, v));
    return op_coin(c) ? turned : joined(c, (ValueId[]){flat(c, v), turned}, 2, 0);
}

/* Gradients of keys and values, side by side by rows, as those of one tensor of both. */
static ValueId side_by_side(OpCase *c, const Sizes *s, ValueId k, ValueId v)
{
    const ValueId parts[] = {
        reshape(c, turn(c, k), DIMS(s->batch, s->keys, s->heads * s->width)),
        reshape(c, turn(c, v), DIMS(s->batch, s->keys, s->heads * s->value_width))};
    const ValueId both = joined(c, parts, 2, 2);
    return flat(c, add(c, OP_neg, &both, 1, NULL));
}

/* The result may be there by rows, too, as models have it. */
static void gradient(OpCase *c, const Sizes *s)
{
    Nodes n = forward(c, s);
    const ValueId saved = op_coin(c) ? turn(c, n.out) : n.out;
    const ValueId dout = operand(c, s, s->rows, s->value_width);
    const ValueId in[] = {dout, n.q, n.k, n.v, n.max, n.sum};
    const ValueId dq = add(c, OP_attention_grad, in, 6, &n.attrs);
    c->node = graph_value(c->g, dq)->def;
    const ValueId dk = graph_node(c->g, c->node)->out[1], dv = graph_node(c->g, c->node)->out[2];
    const bool together = op_coin(c);
    ValueId parts[4] = {anyhow(c, dq), flat(c, saved)};
    parts[2] = together ? side_by_side(c, s, dk, dv) : anyhow(c, dk);
    parts[3] = together ? VALUE_NONE : anyhow(c, dv);
    c->out = joined(c, parts, together ? 3 : 4, 0);
}

void library_attention_grad(OpCase *c)
{
    Sizes s = random_sizes(c);
    s.keys += s.rows == 1 && s.keys == 1; /* which the library refuses */
    gradient(c, &s);
}

void library_attention_parts(OpCase *c)
{
    const bool one = op_coin(c);
    Sizes s = {.batch = one ? 1 : 5, .heads = one ? 30 : 6, .width = 8, .value_width = 8};
    s.rows = op_int(c, 193, 256);
    s.keys = op_int(c, 257, 384);
    gradient(c, &s);
}
