/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random cases of elements by number, and of order; see op_cases.h. */
#include "op_cases.h"

/* An index of t's shape, but along the axis, where t has `length` elements; now and then numbers
 * that are outside of them. */
static ValueId index_of(OpCase *c, Type t, int64_t length)
{
    int64_t beyond = !c->small && op_coin(c) ? 2 : 0;
    bool bytes = length < 250 && beyond == 0 && op_coin(c);
    return op_integers(c, t, bytes ? DTYPE_U8 : DTYPE_I32, -beyond, length - 1 + beyond);
}

void op_gather(OpCase *c)
{
    AttrList attrs = {0};
    Type t = op_shape(c, 1, 4), index = t;
    int axis = op_axis(c, &attrs, t);
    int64_t kind = c->small ? 3 : op_int(c, 0, 5);
    index.dim[axis] = op_dim(c);
    if (kind == 0)
        op_integers(c, t, DTYPE_I32, -100000, 100000);
    else if (kind == 1)
        op_integers(c, t, op_coin(c) ? DTYPE_U8 : DTYPE_BOOL, 0, 1);
    else
        op_normal(c, t);
    index_of(c, index, t.dim[axis]);
    op_done(c, OP_gather, &attrs);
}

void op_scatter_add(OpCase *c)
{
    AttrList attrs = {0};
    Type t = op_shape(c, 1, 4), index = t;
    int axis = op_axis(c, &attrs, t);
    index.dim[axis] = op_dim(c);
    attrs_ints(&attrs, ATTR_shape, t.dim, t.rank);
    index_of(c, index, t.dim[axis]);
    if (!c->small && op_int(c, 0, 3) == 0)
        op_integers(c, index, DTYPE_I32, -1000, 1000);
    else
        op_normal(c, index);
    op_done(c, OP_scatter_add, &attrs);
}

/* Few different numbers, so that many are equal, or many. */
static void sorted_values(OpCase *c, Type t)
{
    int64_t most = op_coin(c) ? 3 : 100000;
    if (op_int(c, 0, 2) == 0) {
        op_integers(c, t, DTYPE_I32, -most, most);
        return;
    }
    op_normal(c, t);
    double *x = c->data[c->n_in - 1];
    for (int64_t i = 0; i < type_elements(&t) && most == 3; i++)
        x[i] = (double)op_int(c, -2, 2);
}

static void sort_attrs(OpCase *c, AttrList *attrs, int64_t length)
{
    if (op_coin(c))
        attrs_int(attrs, ATTR_count, op_int(c, 1, length));
    if (op_coin(c))
        attrs_int(attrs, ATTR_descending, 1);
}

void op_argsort(OpCase *c)
{
    AttrList attrs = {0};
    Type t = op_coin(c) ? op_shape(c, 1, 4) : DIMS(op_int(c, 1, 5), op_int(c, 60, 600));
    sort_attrs(c, &attrs, t.dim[t.rank - 1]);
    sorted_values(c, t);
    op_done(c, OP_argsort, &attrs);
}

/* Lines that are sorted in the workspace. */
void op_long_argsort(OpCase *c)
{
    AttrList attrs = {0};
    Type t = DIMS(op_int(c, 1, 3), op_int(c, 4096, 4700));
    sort_attrs(c, &attrs, t.dim[1]);
    sorted_values(c, t);
    op_done(c, OP_argsort, &attrs);
}
