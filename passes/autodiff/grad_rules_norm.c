/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Gradients of normalisations, softmax and losses. */
#include "passes/autodiff/grad.h"

/* The attributes that batch norm's gradients share with it: axis and eps. */
static ValueId bn_sums(GradContext *c)
{
    AttrList attrs = grad_attrs(c);
    const ValueId in[4] = {c->dout[0], grad_in(c, 0), grad_in(c, 1), grad_in(c, 2)};
    return grad_op(c, OP_bn_grad_sums, in, 4, &attrs);
}

/* Mean and variance are those of this very input: training. */
static bool uses_own_statistics(const GradContext *c)
{
    const Node *stats = value_node(c->graph, grad_in(c, 1));
    return stats->op == OP_bn_stats && stats->in[0] == grad_in(c, 0) &&
           stats->out[0] == grad_in(c, 1) && stats->out[1] == grad_in(c, 2);
}

/* dx where mean and variance are given: dy * gamma * rstd, which is the forward without shift. */
static ValueId bn_apply_scale(GradContext *c)
{
    AttrList attrs = grad_attrs(c);
    Type channels = grad_in_type(c, 1);
    ValueId zero = grad_filled(c, &channels, 0);
    const ValueId in[5] = {c->dout[0], zero, grad_in(c, 2), grad_in(c, 3), zero};
    return grad_op(c, OP_bn_apply, in, 5, &attrs);
}

/* With r = 1/sqrt(var + eps): dmean = -gamma r dbeta, dvar = -1/2 gamma r^2 dgamma. */
static void bn_statistics_grads(GradContext *c, ValueId dgamma, ValueId dbeta)
{
    ValueId eps = grad_number(c, node_float(c->node, ATTR_eps, 1e-5));
    ValueId rstd = grad_op1(c, OP_rsqrt, grad_op2(c, OP_add, grad_in(c, 2), eps));
    ValueId slope = grad_scale(c, grad_op2(c, OP_mul, grad_in(c, 3), rstd), -1);
    if (grad_wanted(c, 1))
        c->din[1] = grad_op2(c, OP_mul, slope, dbeta);
    if (grad_wanted(c, 2)) {
        ValueId half = grad_scale(c, grad_op2(c, OP_mul, slope, rstd), 0.5);
        c->din[2] = grad_op2(c, OP_mul, half, dgamma);
    }
}

/* (x, mean, var, gamma, beta).  In training the gradient through mean and variance is part of dx,
 * and nothing flows into bn_stats. */
void grad_bn_apply(GradContext *c)
{
    bool training = uses_own_statistics(c);
    bool statistics = !training && (grad_wanted(c, 1) || grad_wanted(c, 2));
    ValueId dgamma = VALUE_NONE, dbeta = VALUE_NONE;
    if ((training && grad_wanted(c, 0)) || statistics || grad_wanted(c, 3) || grad_wanted(c, 4)) {
        dgamma = bn_sums(c);
        dbeta = grad_output(c, dgamma, 1);
    }
    if (grad_wanted(c, 0) && training) {
        AttrList attrs = grad_attrs(c);
        const ValueId in[7] = {c->dout[0],    grad_in(c, 0), grad_in(c, 1), grad_in(c, 2),
                               grad_in(c, 3), dgamma,        dbeta};
        c->din[0] = grad_op(c, OP_bn_grad_x, in, 7, &attrs);
    } else if (grad_wanted(c, 0)) {
        c->din[0] = bn_apply_scale(c);
    }
    if (statistics)
        bn_statistics_grads(c, dgamma, dbeta);
    if (grad_wanted(c, 3))
        c->din[3] = dgamma;
    if (grad_wanted(c, 4))
        c->din[4] = dbeta;
}

/* A vector [C] as [C, 1, ..] so that it broadcasts along dim `axis` of a tensor of rank `rank`. */
static ValueId along_axis(GradContext *c, ValueId v, int axis, int rank)
{
    Type t = grad_type(c, v), wide = {.dtype = t.dtype, .rank = rank - axis};
    wide.dim[0] = t.dim[0];
    for (int i = 1; i < wide.rank; i++)
        wide.dim[i] = 1;
    return grad_reshaped(c, v, &wide);
}

/* x -> mean, var over m elements a channel: dx = dmean / m + dvar * 2 (x - mean) / m.  Reached only
 * by statistics that another tensor is normalised with. */
void grad_bn_stats(GradContext *c)
{
    Type x = grad_in_type(c, 0);
    int axis = (int)node_int(c->node, ATTR_axis, 1);
    double m = (double)(type_elements(&x) / x.dim[axis]);
    ValueId sum = grad_filled(c, &x, 0);
    if (c->dout[0] != VALUE_NONE) {
        ValueId part = along_axis(c, grad_scale(c, c->dout[0], 1 / m), axis, x.rank);
        sum = grad_op2(c, OP_add, sum, part);
    }
    if (c->dout[1] != VALUE_NONE) {
        ValueId mean = along_axis(c, grad_out(c, 0), axis, x.rank);
        ValueId factor = along_axis(c, grad_scale(c, c->dout[1], 2 / m), axis, x.rank);
        ValueId centred = grad_op2(c, OP_sub, grad_in(c, 0), mean);
        sum = grad_op2(c, OP_add, sum, grad_op2(c, OP_mul, centred, factor));
    }
    c->din[0] = sum;
}

/* (x, gamma?, beta?) -> y, mean, rstd: only y is differentiated, the others are there to be saved.
 */
void grad_layernorm(GradContext *c)
{
    AttrList attrs = grad_attrs(c);
    ValueId in[5] = {c->dout[0], grad_in(c, 0), grad_out(c, 1), grad_out(c, 2)};
    if (c->dout[0] == VALUE_NONE)
        return;
    if (grad_wanted(c, 1) || grad_wanted(c, 2)) {
        ValueId sums = grad_op(c, OP_layernorm_grad_sums, in, 4, &attrs);
        if (grad_wanted(c, 1))
            c->din[1] = sums;
        if (grad_wanted(c, 2))
            c->din[2] = grad_output(c, sums, 1);
    }
    if (c->node->n_in > 1)
        in[4] = grad_in(c, 1);
    if (grad_wanted(c, 0))
        c->din[0] = grad_op(c, OP_layernorm_grad, in, c->node->n_in > 1 ? 5 : 4, &attrs);
}

void grad_softmax(GradContext *c)
{
    AttrList attrs = grad_attrs(c);
    c->din[0] =
        grad_op(c, OP_softmax_grad, (const ValueId[]){c->dout[0], grad_out(c, 0)}, 2, &attrs);
}

void grad_log_softmax(GradContext *c)
{
    AttrList attrs = grad_attrs(c);
    c->din[0] =
        grad_op(c, OP_log_softmax_grad, (const ValueId[]){c->dout[0], grad_out(c, 0)}, 2, &attrs);
}

void grad_cross_entropy(GradContext *c)
{
    AttrList attrs = grad_attrs(c);
    bool weighted = c->node->n_in > 2; /* the weights themselves are constants, as in PyTorch */
    const ValueId in[4] = {grad_in(c, 0), grad_in(c, 1), c->dout[0],
                           weighted ? grad_in(c, 2) : VALUE_NONE};
    if (grad_wanted(c, 0))
        c->din[0] = grad_op(c, OP_cross_entropy_grad, in, weighted ? 4 : 3, &attrs);
}

void grad_lrn(GradContext *c)
{
    AttrList attrs = grad_attrs(c);
    c->din[0] = grad_op(c, OP_lrn_grad, (const ValueId[]){c->dout[0], grad_in(c, 0)}, 2, &attrs);
}
