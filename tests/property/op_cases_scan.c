/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random cases of sums and products along an axis; see op_cases.h. */
#include "op_cases.h"

/* Lines of every length, also more side by side than a task takes. */
static Type shape_of_lines(OpCase *c)
{
    bool many = !c->small && op_int(c, 0, 3) == 0;
    return many ? DIMS(op_dim(c), op_dim(c), op_int(c, 60, 140)) : op_shape(c, 1, 4);
}

/* Factors near 1, of both signs, now and then a 0: products neither overflow nor vanish. */
static ValueId factors(OpCase *c, Type t)
{
    int64_t zeros = op_int(c, 0, 2);
    ValueId v = op_floats(c, t, 0.9, 1.1);
    double *x = c->data[c->n_in - 1];
    for (int64_t i = 0; i < type_elements(&t); i++)
        x[i] = zeros && op_int(c, 0, zeros == 1 ? 200 : 3) == 0 ? 0 : op_coin(c) ? x[i] : -x[i];
    return v;
}

void op_cumsum(OpCase *c)
{
    AttrList attrs = {0};
    Type t = shape_of_lines(c);
    op_axis(c, &attrs, t);
    if (op_coin(c))
        attrs_int(&attrs, ATTR_reverse, 1);
    if (op_coin(c))
        attrs_int(&attrs, ATTR_exclusive, 1);
    if (op_int(c, 0, 3) == 0 && !c->small)
        op_integers(c, t, DTYPE_I32, -1000, 1000);
    else
        op_normal(c, t);
    op_done(c, OP_cumsum, &attrs);
}

static void product(OpCase *c, OpKind op)
{
    AttrList attrs = {0};
    Type t = shape_of_lines(c);
    op_axis(c, &attrs, t);
    if (op == OP_prod && op_coin(c))
        attrs_int(&attrs, ATTR_keepdims, 1);
    if (op_int(c, 0, 3) == 0 && !c->small) {
        int64_t most = op_coin(c) ? 1 : 300; /* large products wrap around */
        op_integers(c, t, DTYPE_I32, -most, most);
    } else {
        factors(c, t);
    }
    op_done(c, op, &attrs);
}

void op_cumprod(OpCase *c)
{
    product(c, OP_cumprod);
}

void op_prod(OpCase *c)
{
    product(c, OP_prod);
}

/* What y holds need not be the product: the result is linear in it. */
void op_cumprod_grad(OpCase *c)
{
    AttrList attrs = {0};
    Type t = shape_of_lines(c);
    op_axis(c, &attrs, t);
    op_normal(c, t);
    factors(c, t);
    op_floats(c, t, -1, 1);
    op_done(c, OP_cumprod_grad, &attrs);
}

void op_prod_grad(OpCase *c)
{
    AttrList attrs = {0};
    Type t = shape_of_lines(c), lines = t;
    lines.dim[op_axis(c, &attrs, t)] = 1;
    op_normal(c, lines);
    factors(c, t);
    op_done(c, OP_prod_grad, &attrs);
}
