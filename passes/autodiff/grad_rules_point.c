/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Gradients of element-wise operations.  Where there is a choice they read the output instead of
 * the input, so that the input's memory can be reused. */
#include "passes/autodiff/grad.h"
#include "passes/rewrite.h"

/* Unary rules: dx from dy = c->dout[0], x = input 0, y = output 0. */
#define UNARY_GRAD(name, ...)                                                                      \
    void grad_##name(GradContext *c)                                                               \
    {                                                                                              \
        ValueId dy = c->dout[0], x = grad_in(c, 0), y = grad_out(c, 0);                            \
        (void)x, (void)y;                                                                          \
        c->din[0] = __VA_ARGS__;                                                                   \
    }

UNARY_GRAD(neg, grad_op1(c, OP_neg, dy))
UNARY_GRAD(abs, grad_op2(c, OP_mul, dy, grad_op1(c, OP_sign, x)))
UNARY_GRAD(exp, grad_op2(c, OP_mul, dy, y))
UNARY_GRAD(log, grad_op2(c, OP_div, dy, x))
UNARY_GRAD(sin, grad_op2(c, OP_mul, dy, grad_op1(c, OP_cos, x)))
UNARY_GRAD(cos, grad_op2(c, OP_mul, dy, grad_op1(c, OP_neg, grad_op1(c, OP_sin, x))))
UNARY_GRAD(sqrt, grad_op2(c, OP_div, grad_scale(c, dy, 0.5), y))
UNARY_GRAD(tanh, grad_op2(c, OP_tanh_grad, dy, y))
UNARY_GRAD(sigmoid, grad_op2(c, OP_sigmoid_grad, dy, y))
UNARY_GRAD(relu, grad_op2(c, OP_relu_grad, dy, y))
UNARY_GRAD(silu, grad_op2(c, OP_silu_grad, dy, x))
UNARY_GRAD(mish, grad_op2(c, OP_mish_grad, dy, x))
UNARY_GRAD(hardswish, grad_op2(c, OP_hardswish_grad, dy, x))

/* y = x^-1/2: dx = -1/2 dy y^3 */
void grad_rsqrt(GradContext *c)
{
    ValueId y = grad_out(c, 0);
    ValueId cube = grad_op2(c, OP_mul, grad_op2(c, OP_mul, y, y), y);
    c->din[0] = grad_op2(c, OP_mul, grad_scale(c, c->dout[0], -0.5), cube);
}

/* 2/sqrt(pi) e^(-x^2) */
void grad_erf(GradContext *c)
{
    ValueId x = grad_in(c, 0);
    ValueId e = grad_op1(c, OP_exp, grad_op1(c, OP_neg, grad_op2(c, OP_mul, x, x)));
    c->din[0] = grad_op2(c, OP_mul, c->dout[0], grad_scale(c, e, 1.1283791670955126));
}

/* The gradient operation with the same attributes, which reads `saved`. */
static void grad_like(GradContext *c, OpKind op, ValueId saved)
{
    AttrList attrs = grad_attrs(c);
    c->din[0] = grad_op(c, op, (const ValueId[]){c->dout[0], saved}, 2, &attrs);
}

void grad_gelu(GradContext *c)
{
    grad_like(c, OP_gelu_grad, grad_in(c, 0));
}

/* y > 0 where x is, unless the slope below 0 turns the sign around. */
void grad_leaky_relu(GradContext *c)
{
    bool keeps_sign = node_float(c->node, ATTR_alpha, 0) >= 0;
    grad_like(c, OP_relu_grad, keeps_sign ? grad_out(c, 0) : grad_in(c, 0));
}

void grad_elu(GradContext *c)
{
    grad_like(c, OP_elu_grad, grad_out(c, 0));
}

/* sigmoid(beta x) = 1 - e^(-beta y) */
void grad_softplus(GradContext *c)
{
    grad_like(c, OP_softplus_grad, grad_out(c, 0));
}

/* y lies between the bounds where x does; only x says whether it lay on one. */
void grad_clamp(GradContext *c)
{
    bool open = node_flag(c->node, ATTR_open);
    grad_like(c, OP_clamp_grad, open ? grad_out(c, 0) : grad_in(c, 0));
}

void grad_cast(GradContext *c)
{
    AttrList attrs = {0};
    attrs_string(&attrs, ATTR_dtype, dtype_name(grad_in_type(c, 0).dtype));
    c->din[0] = grad_op(c, OP_cast, c->dout, 1, &attrs);
}

void grad_add(GradContext *c)
{
    for (int i = 0; i < 2; i++)
        if (grad_wanted(c, i))
            grad_set(c, i, c->dout[0]);
}

void grad_sub(GradContext *c)
{
    if (grad_wanted(c, 0))
        grad_set(c, 0, c->dout[0]);
    if (grad_wanted(c, 1)) { /* the sum first: it may be much smaller */
        grad_set(c, 1, c->dout[0]);
        c->din[1] = grad_op1(c, OP_neg, c->din[1]);
    }
}

void grad_mul(GradContext *c)
{
    for (int i = 0; i < 2; i++)
        if (grad_wanted(c, i))
            grad_set(c, i, grad_op2(c, OP_mul, c->dout[0], grad_in(c, 1 - i)));
}

/* y = a / b: da = dy / b, db = -da y */
void grad_div(GradContext *c)
{
    ValueId da = grad_op2(c, OP_div, c->dout[0], grad_in(c, 1));
    if (grad_wanted(c, 0))
        grad_set(c, 0, da);
    if (grad_wanted(c, 1)) {
        grad_set(c, 1, grad_op2(c, OP_mul, da, grad_out(c, 0)));
        c->din[1] = grad_op1(c, OP_neg, c->din[1]);
    }
}

/* b a^(b-1) for a constant b */
static ValueId power_slope(GradContext *c, double b)
{
    ValueId a = grad_in(c, 0);
    if (b == 2)
        return grad_scale(c, a, 2);
    return grad_scale(c, grad_op2(c, OP_pow, a, grad_number(c, b - 1)), b);
}

/* The same for a tensor b; 0 where b is 0, as in PyTorch, whatever a is. */
static ValueId general_power_slope(GradContext *c)
{
    ValueId a = grad_in(c, 0), b = grad_in(c, 1), zero = grad_number(c, 0);
    ValueId lower = grad_op2(c, OP_pow, a, grad_op2(c, OP_sub, b, grad_number(c, 1)));
    ValueId slope = grad_op2(c, OP_mul, b, lower);
    return grad_op3(c, OP_select, grad_op2(c, OP_eq, b, zero), zero, slope);
}

/* y log a; 0 where a is 0, as in PyTorch for b >= 0 */
static ValueId exponent_slope(GradContext *c)
{
    ValueId a = grad_in(c, 0), zero = grad_number(c, 0);
    ValueId slope = grad_op2(c, OP_mul, grad_out(c, 0), grad_op1(c, OP_log, a));
    return grad_op3(c, OP_select, grad_op2(c, OP_eq, a, zero), zero, slope);
}

void grad_pow(GradContext *c)
{
    double b;
    bool constant = const_value(c->graph, grad_in(c, 1), &b);
    if (grad_wanted(c, 0) && !(constant && b == 0)) {
        ValueId slope = constant ? power_slope(c, b) : general_power_slope(c);
        grad_set(c, 0, grad_op2(c, OP_mul, c->dout[0], slope));
    }
    if (grad_wanted(c, 1))
        grad_set(c, 1, grad_op2(c, OP_mul, c->dout[0], exponent_slope(c)));
}

/* dy goes to the operand that won, half to each when they are equal (as PyTorch does). */
static void grad_extremum(GradContext *c, OpKind first_wins, OpKind second_wins)
{
    ValueId dy = c->dout[0], a = grad_in(c, 0), b = grad_in(c, 1);
    ValueId equal = grad_op2(c, OP_eq, a, b);
    ValueId tie = grad_op3(c, OP_select, equal, grad_scale(c, dy, 0.5), grad_number(c, 0));
    OpKind wins[2] = {first_wins, second_wins};
    for (int i = 0; i < 2; i++)
        if (grad_wanted(c, i))
            grad_set(c, i, grad_op3(c, OP_select, grad_op2(c, wins[i], a, b), dy, tie));
}

void grad_maximum(GradContext *c)
{
    grad_extremum(c, OP_gt, OP_lt);
}

void grad_minimum(GradContext *c)
{
    grad_extremum(c, OP_lt, OP_gt);
}

/* (condition, a, b) */
void grad_select(GradContext *c)
{
    ValueId condition = grad_in(c, 0), dy = c->dout[0];
    if (grad_wanted(c, 1))
        grad_set(c, 1, grad_op3(c, OP_select, condition, dy, grad_number(c, 0)));
    if (grad_wanted(c, 2))
        grad_set(c, 2, grad_op3(c, OP_select, condition, grad_number(c, 0), dy));
}

/* (dy', y): linear in dy'; does not change with y but at 0 */
void grad_relu_grad(GradContext *c)
{
    AttrList attrs = grad_attrs(c);
    const ValueId in[2] = {c->dout[0], grad_in(c, 1)};
    if (grad_wanted(c, 0))
        grad_set(c, 0, grad_op(c, OP_relu_grad, in, 2, &attrs));
}

/* The same mask and scale: same key, same counters. */
void grad_dropout(GradContext *c)
{
    AttrList attrs = grad_attrs(c);
    c->din[0] = grad_op(c, OP_dropout, (const ValueId[]){c->dout[0], grad_in(c, 1)}, 2, &attrs);
}

void grad_causal_mask(GradContext *c)
{
    AttrList attrs = grad_attrs_without(c, ATTR_value);
    attrs_float(&attrs, ATTR_value, 0);
    c->din[0] = grad_op(c, OP_causal_mask, c->dout, 1, &attrs);
}
