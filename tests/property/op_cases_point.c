/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random cases of constants and element-wise operations; see op_cases.h. */
#include "op_cases.h"

#include "ir/random.h"

/* --- sources and counting --- */

void op_const(OpCase *c)
{
    AttrList attrs = {0};
    attrs_float(&attrs, ATTR_value, op_uniform(c, -3, 3));
    ValueId v = graph_add_source(c->g, OP_const, op_shape(c, 0, 3), &attrs, "%out", (Loc){0});
    c->node = graph_value(c->g, v)->def;
}

void op_full(OpCase *c)
{
    static const char *const types[] = {"f32", "i32", "u8", "bool"};
    Type t = op_shape(c, 0, 3);
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_shape, t.dim, t.rank);
    attrs_float(&attrs, ATTR_value, (double)op_int(c, 0, 1));
    attrs_string(&attrs, ATTR_dtype, types[op_int(c, 0, 3)]);
    op_done(c, OP_full, &attrs);
}

void op_iota(OpCase *c)
{
    Type t = op_shape(c, 1, 3);
    AttrList attrs = {0};
    if (op_coin(c))
        op_axis(c, &attrs, t);
    attrs_ints(&attrs, ATTR_shape, t.dim, t.rank);
    attrs_string(&attrs, ATTR_dtype, op_coin(c) ? "f32" : "i32");
    op_done(c, OP_iota, &attrs);
}

void op_literal(OpCase *c)
{
    double values[200];
    int n = (int)op_int(c, 1, 200);
    for (int i = 0; i < n; i++)
        values[i] = (double)(float)op_uniform(c, -10, 10);
    AttrList attrs = {0};
    attrs_floats(&attrs, ATTR_values, values, n);
    op_done(c, OP_literal, &attrs);
}

/* --- element-wise --- */

#define POINT1(name, low, high)                                                                    \
    void op_##name(OpCase *c)                                                                      \
    {                                                                                              \
        op_floats(c, op_shape(c, 0, 4), low, high);                                                \
        op_done(c, OP_##name, NULL);                                                               \
    }
#define POINT1_INT(name)                                                                           \
    void op_##name(OpCase *c)                                                                      \
    {                                                                                              \
        Type t = op_shape(c, 0, 4);                                                                \
        if (op_coin(c))                                                                            \
            op_integers(c, t, DTYPE_I32, -1000, 1000);                                             \
        else                                                                                       \
            op_normal(c, t);                                                                       \
        op_done(c, OP_##name, NULL);                                                               \
    }
POINT1_INT(neg)
POINT1_INT(abs)
POINT1_INT(sign)
POINT1_INT(relu)
POINT1(exp, -100, 80)
POINT1(log, 1e-3, 50)
POINT1(sqrt, 0, 50)
POINT1(rsqrt, 1e-3, 50)
POINT1(sin, -300, 300)
POINT1(cos, -300, 300)
POINT1(tanh, -6, 6)
POINT1(sigmoid, -20, 20)
POINT1(silu, -20, 20)
POINT1(erf, -4, 4)
POINT1(mish, -20, 20)
POINT1(hardswish, -5, 5)

/* The number of an activation: 1 often, as code treats it apart. */
static AttrList number_attr(OpCase *c, AttrKey key, double low, double high)
{
    AttrList attrs = {0};
    attrs_float(&attrs, key, op_coin(c) ? 1 : op_uniform(c, low, high));
    return attrs;
}

#define POINT1_NUMBER(name, key, least, low, high)                                                 \
    void op_##name(OpCase *c)                                                                      \
    {                                                                                              \
        AttrList attrs = number_attr(c, key, least, 2);                                            \
        op_floats(c, op_shape(c, 0, 4), low, high);                                                \
        op_done(c, OP_##name, &attrs);                                                             \
    }
POINT1_NUMBER(leaky_relu, ATTR_alpha, -1, -3, 3)
POINT1_NUMBER(elu, ATTR_alpha, 0, -10, 3)
POINT1_NUMBER(softplus, ATTR_beta, -2, -30, 30)

/* One bound or both, now and then the wrong way round. */
static AttrList bounds(OpCase *c)
{
    AttrList attrs = {0};
    int64_t which = op_int(c, 1, 3);
    if (which & 1)
        attrs_float(&attrs, ATTR_min, op_uniform(c, -2, 1));
    if (which & 2)
        attrs_float(&attrs, ATTR_max, op_uniform(c, 0, 2));
    if (op_coin(c))
        attrs_int(&attrs, ATTR_open, 1);
    return attrs;
}

void op_clamp(OpCase *c)
{
    AttrList attrs = bounds(c);
    op_normal(c, op_shape(c, 0, 4));
    op_done(c, OP_clamp, &attrs);
}

void op_gelu(OpCase *c)
{
    AttrList attrs = {0};
    if (op_coin(c))
        attrs_int(&attrs, ATTR_approx, 1);
    op_floats(c, op_shape(c, 0, 4), -4, 8);
    op_done(c, OP_gelu, &attrs);
}

void op_cast(OpCase *c)
{
    static const char *const to[] = {"f32", "i32", "u8", "bool"};
    AttrList attrs = {0};
    Type t = op_shape(c, 0, 4);
    attrs_string(&attrs, ATTR_dtype, to[op_int(c, 0, 3)]);
    switch (op_int(c, 0, 3)) {
    case 0:
        op_floats(c, t, -300, 300);
        break;
    case 1:
        op_integers(c, t, DTYPE_I32, -70000, 70000);
        break;
    case 2:
        op_integers(c, t, DTYPE_U8, 0, 255);
        break;
    default:
        op_integers(c, t, DTYPE_BOOL, 0, 1);
    }
    op_done(c, OP_cast, &attrs);
}

#define POINT2(name)                                                                               \
    void op_##name(OpCase *c)                                                                      \
    {                                                                                              \
        Type a, b;                                                                                 \
        op_pair(c, op_shape(c, 0, 4), &a, &b);                                                     \
        op_normal(c, a);                                                                           \
        op_normal(c, b);                                                                           \
        op_done(c, OP_##name, NULL);                                                               \
    }
#define POINT2_INT(name)                                                                           \
    void op_##name(OpCase *c)                                                                      \
    {                                                                                              \
        Type a, b;                                                                                 \
        bool whole = op_coin(c);                                                                   \
        op_pair(c, op_shape(c, 0, 4), &a, &b);                                                     \
        whole ? op_integers(c, a, DTYPE_I32, -4, 4) : op_normal(c, a);                             \
        whole ? op_integers(c, b, DTYPE_I32, -4, 4) : op_normal(c, b);                             \
        op_done(c, OP_##name, NULL);                                                               \
    }
POINT2_INT(add)
POINT2_INT(sub)
POINT2_INT(mul)
POINT2(div)
POINT2_INT(maximum)
POINT2_INT(minimum)
POINT2_INT(eq)
POINT2_INT(ne)
POINT2_INT(lt)
POINT2_INT(le)
POINT2_INT(gt)
POINT2_INT(ge)
POINT2(tanh_grad)
POINT2(sigmoid_grad)
POINT2(silu_grad)
POINT2(mish_grad)
POINT2(hardswish_grad)

static void two_floats(OpCase *c)
{
    Type a, b;
    op_pair(c, op_shape(c, 0, 4), &a, &b);
    op_normal(c, a);
    op_normal(c, b);
}

#define POINT2_ATTRS(name, list)                                                                   \
    void op_##name(OpCase *c)                                                                      \
    {                                                                                              \
        AttrList attrs = list;                                                                     \
        two_floats(c);                                                                             \
        op_done(c, OP_##name, &attrs);                                                             \
    }
POINT2_ATTRS(relu_grad, op_coin(c) ? (AttrList){0} : number_attr(c, ATTR_alpha, -1, 1))
POINT2_ATTRS(elu_grad, number_attr(c, ATTR_alpha, 0, 2))
POINT2_ATTRS(clamp_grad, bounds(c))

/* beta y is not negative. */
void op_softplus_grad(OpCase *c)
{
    AttrList attrs = number_attr(c, ATTR_beta, -2, 2);
    Type a, b;
    bool negative = attrs.items[0].u.f < 0;
    op_pair(c, op_shape(c, 0, 4), &a, &b);
    op_normal(c, a);
    op_floats(c, b, negative ? -3 : 0, negative ? 0 : 3);
    op_done(c, OP_softplus_grad, &attrs);
}

/* Up to some tasks of words; the last word is seldom full. */
void op_relu_mask(OpCase *c)
{
    Type t = op_int(c, 0, 3) ? op_shape(c, 0, 4) : DIMS(op_int(c, 1, 40000));
    op_normal(c, t);
    op_done(c, OP_relu_mask, NULL);
}

void op_relu_mask_grad(OpCase *c)
{
    Type t = op_shape(c, 0, 4);
    op_normal(c, t);
    op_integers(c, DIMS((type_elements(&t) + 31) / 32), DTYPE_I32, INT32_MIN, INT32_MAX);
    AttrList attrs = op_coin(c) ? (AttrList){0} : number_attr(c, ATTR_alpha, -1, 1);
    op_done(c, OP_relu_mask_grad, &attrs);
}

void op_gelu_grad(OpCase *c)
{
    Type a, b;
    AttrList attrs = {0};
    if (op_coin(c))
        attrs_int(&attrs, ATTR_approx, 1);
    op_pair(c, op_shape(c, 0, 4), &a, &b);
    op_normal(c, a);
    op_floats(c, b, -6, 6);
    op_done(c, OP_gelu_grad, &attrs);
}

void op_pow(OpCase *c)
{
    static const double powers[] = {0, 1, 2, 3, 0.5, -0.5, -1, -2, 1.5, 7, 2.25};
    Type a, b;
    op_pair(c, op_shape(c, 0, 4), &a, &b);
    op_floats(c, a, 0.05, 4);
    if (op_coin(c)) {
        op_normal(c, b);
        op_done(c, OP_pow, NULL);
        return;
    }
    AttrList attrs = {0};
    attrs_float(&attrs, ATTR_value, powers[op_int(c, 0, 10)]);
    ValueId power =
        graph_add_source(c->g, OP_const, type_scalar(DTYPE_F32), &attrs, "%power", (Loc){0});
    op_on(c, OP_pow, (const ValueId[]){c->in[0], power}, 2, NULL);
}

void op_select(OpCase *c)
{
    Type t = op_shape(c, 0, 4);
    op_integers(c, op_coin(c) ? t : op_smaller(c, t), DTYPE_BOOL, 0, 1);
    op_normal(c, op_coin(c) ? t : op_smaller(c, t));
    op_normal(c, op_smaller(c, t));
    op_done(c, OP_select, NULL);
}

void op_dropout(OpCase *c)
{
    AttrList attrs = {0};
    attrs_float(&attrs, ATTR_p, op_uniform(c, 0, 0.9));
    attrs_int(&attrs, ATTR_key, (int64_t)op_bits(c));
    op_normal(c, op_shape(c, 0, 4));
    op_integers(c, DIMS(4), DTYPE_I32, INT32_MIN, INT32_MAX);
    op_done(c, OP_dropout, &attrs);
}

void op_random(OpCase *c)
{
    AttrList attrs = {0};
    Type t = op_shape(c, 0, 4);
    int kind = (int)op_int(c, 0, RANDOM_KINDS - 1);
    attrs_ints(&attrs, ATTR_shape, t.dim, t.rank);
    attrs_int(&attrs, ATTR_key, (int64_t)op_bits(c));
    attrs_string(&attrs, ATTR_kind, random_kind_name[kind]);
    if (kind == RANDOM_INTEGERS)
        attrs_int(&attrs, ATTR_below, op_coin(c) ? op_int(c, 1, 9) : op_int(c, 1, RANDOM_MOST));
    op_integers(c, DIMS(4), DTYPE_I32, INT32_MIN, INT32_MAX);
    op_done(c, OP_random, &attrs);
}

void op_causal_mask(OpCase *c)
{
    AttrList attrs = {0};
    if (op_coin(c))
        attrs_float(&attrs, ATTR_value, -3);
    op_normal(c, op_shape(c, 2, 4));
    op_done(c, OP_causal_mask, &attrs);
}
