/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "op_library_attention.h"

#include <math.h>

typedef struct Sizes {
    int64_t batch, heads, rows, keys, width, value_width;
} Sizes;

typedef struct Nodes {
    ValueId out, max, sum;
    AttrList attrs;
} Nodes;

static Sizes random_sizes(OpCase *c)
{
    Sizes s = {.batch = op_int(c, 1, 3)};
    s.heads = op_int(c, 1, 4);
    s.rows = op_int(c, 1, 70);
    s.keys = op_coin(c) ? s.rows : op_int(c, 1, 140);
    s.width = 8 * op_int(c, 1, 5);
    s.value_width = op_coin(c) ? s.width : 8 * op_int(c, 1, 16);
    return s;
}

static ValueId add(OpCase *c, OpKind op, const ValueId *in, int n, const AttrList *attrs)
{
    return graph_add(c->g, op, in, n, attrs, NULL, (Loc){0});
}

static Type of(const Sizes *s, int64_t rows, int64_t width)
{
    return DIMS(s->batch, s->heads, rows, width);
}

static Nodes forward(OpCase *c, const Sizes *s)
{
    Nodes n = {.attrs = {.n = 0}};
    c->bf16 = UINT32_MAX; /* all inputs */
    op_normal(c, of(s, s->rows, s->width));
    op_normal(c, of(s, s->keys, s->width));
    op_normal(c, of(s, s->keys, s->value_width));
    attrs_float(&n.attrs, ATTR_scale, op_uniform(c, 0.5, 1) / sqrt((double)s->width));
    if (op_coin(c))
        attrs_int(&n.attrs, ATTR_causal, 1);
    n.out = add(c, OP_attention, c->in, 3, &n.attrs);
    c->node = graph_value(c->g, n.out)->def;
    n.max = graph_node(c->g, c->node)->out[1];
    n.sum = graph_node(c->g, c->node)->out[2];
    return n;
}

void library_attention(OpCase *c)
{
    const Sizes s = random_sizes(c);
    c->out = forward(c, &s).out;
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
    const int64_t elements = type_elements(value_type(c->g, v));
    AttrList attrs = {.n = 0};
    attrs_ints(&attrs, ATTR_shape, &elements, 1);
    return add(c, OP_reshape, &v, 1, &attrs);
}

static ValueId by_rows(OpCase *c, ValueId v)
{
    static const int64_t perm[] = {0, 2, 1, 3};
    AttrList attrs = {.n = 0};
    attrs_ints(&attrs, ATTR_perm, perm, 4);
    return add(c, OP_transpose, &v, 1, &attrs);
}

/* The result may be there by rows, too, as models have it. */
static void gradient(OpCase *c, const Sizes *s)
{
    Nodes n = forward(c, s);
    AttrList along = {.n = 0};
    const ValueId saved = op_coin(c) ? by_rows(c, n.out) : n.out;
    const ValueId dout = op_normal(c, of(s, s->rows, s->value_width));
    const ValueId in[] = {dout, c->in[0], c->in[1], c->in[2], n.max, n.sum};
    const ValueId dq = add(c, OP_attention_grad, in, 6, &n.attrs);
    c->node = graph_value(c->g, dq)->def;
    const ValueId *d = graph_node(c->g, c->node)->out;
    const ValueId parts[] = {flat(c, d[0]), flat(c, d[1]), flat(c, d[2]), flat(c, saved)};
    attrs_int(&along, ATTR_axis, 0);
    c->out = add(c, OP_concat, parts, 4, &along);
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
