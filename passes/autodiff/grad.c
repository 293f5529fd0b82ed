/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Building blocks of the gradient rules. */
#include "passes/autodiff/grad.h"

#include <string.h>

ValueId grad_op(GradContext *c, OpKind op, const ValueId *in, int n_in, const AttrList *attrs)
{
    const char *name = pool_printf(c->graph->pool, "%s.%s", c->prefix, op_name(op));
    return graph_add(c->graph, op, in, n_in, attrs, name, c->node->loc);
}

ValueId grad_op1(GradContext *c, OpKind op, ValueId a)
{
    return grad_op(c, op, &a, 1, NULL);
}

ValueId grad_op2(GradContext *c, OpKind op, ValueId a, ValueId b)
{
    return grad_op(c, op, (const ValueId[]){a, b}, 2, NULL);
}

ValueId grad_op3(GradContext *c, OpKind op, ValueId a, ValueId b, ValueId x)
{
    return grad_op(c, op, (const ValueId[]){a, b, x}, 3, NULL);
}

ValueId grad_output(const GradContext *c, ValueId v, int i)
{
    return value_node(c->graph, v)->out[i];
}

ValueId grad_number(GradContext *c, double value)
{
    AttrList attrs = {0};
    attrs_float(&attrs, ATTR_value, value);
    const char *name = pool_printf(c->graph->pool, "%s.const", c->prefix);
    return graph_add_source(c->graph, OP_const, type_scalar(DTYPE_F32), &attrs, name, c->node->loc);
}

ValueId grad_scale(GradContext *c, ValueId a, double factor)
{
    return grad_op2(c, OP_mul, a, grad_number(c, factor));
}

ValueId grad_cast_to(GradContext *c, ValueId a, DType dtype)
{
    AttrList attrs = {0};
    if (grad_type(c, a).dtype == dtype)
        return a;
    attrs_string(&attrs, ATTR_dtype, dtype_name(dtype));
    return grad_op(c, OP_cast, &a, 1, &attrs);
}

void grad_want_result(const GradContext *c, AttrList *attrs, ValueId a, ValueId b, DType dtype)
{
    bool bf16 = grad_type(c, a).dtype == DTYPE_BF16 || grad_type(c, b).dtype == DTYPE_BF16;
    if (bf16 != (dtype == DTYPE_BF16))
        attrs_string(attrs, ATTR_dtype, dtype_name(dtype));
}

ValueId grad_filled(GradContext *c, const Type *t, double value)
{
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_shape, t->dim, t->rank);
    attrs_float(&attrs, ATTR_value, value);
    return grad_op(c, OP_full, NULL, 0, &attrs);
}

ValueId grad_reshaped(GradContext *c, ValueId a, const Type *shape)
{
    if (type_same_shape(value_type(c->graph, a), shape))
        return a;
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_shape, shape->dim, shape->rank);
    return grad_op(c, OP_reshape, &a, 1, &attrs);
}

ValueId grad_transposed(GradContext *c, ValueId a, const int64_t *perm)
{
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_perm, perm, value_type(c->graph, a)->rank);
    return grad_op(c, OP_transpose, &a, 1, &attrs);
}

ValueId grad_sum_axes(GradContext *c, ValueId a, const int64_t *axes, int n_axes)
{
    if (n_axes == 0)
        return a;
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_axes, axes, n_axes);
    return grad_op(c, OP_sum, &a, 1, &attrs);
}

static ValueId sum_to(GradContext *c, ValueId a, const Type *to)
{
    Type from = grad_type(c, a);
    int64_t axes[TYPE_MAX_RANK];
    int n_axes = 0, extra = from.rank - to->rank;
    for (int i = 0; i < from.rank; i++)
        if (from.dim[i] != 1 && (i < extra || to->dim[i - extra] == 1))
            axes[n_axes++] = i;
    return grad_reshaped(c, grad_sum_axes(c, a, axes, n_axes), to);
}

void grad_set(GradContext *c, int i, ValueId v)
{
    Type to = grad_in_type(c, i);
    c->din[i] = sum_to(c, v, &to);
}

AttrList grad_attrs(const GradContext *c)
{
    return grad_attrs_without(c, ATTR_COUNT);
}

AttrList grad_attrs_without(const GradContext *c, AttrKey key)
{
    AttrList list = {0};
    for (int i = 0; i < c->node->n_attr; i++)
        if (c->node->attr[i].key != key)
            list.items[list.n++] = c->node->attr[i];
    return list;
}
