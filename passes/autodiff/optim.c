/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Optimizer updates as part of the step: SGD with momentum, Adam and AdamW in PyTorch's forms (the
 * formulas are with the operations: ir/eval_update.c). */
#include "passes/autodiff/optim.h"

#include "passes/rewrite.h"

static const Loc nowhere = {0};

/* "fc1.weight" of "$fc1.weight" */
static const char *path_of(const Graph *g, ValueId param)
{
    return graph_value(g, param)->name + 1;
}

static const char *name_for(const Graph *g, const char *prefix, ValueId param)
{
    return pool_printf(g->pool, "%s%s", prefix, path_of(g, param));
}

ValueId optim_add_norm(Graph *g, const ParamGrad *pairs, size_t n)
{
    ValueId sum = VALUE_NONE;
    for (size_t i = 0; i < n; i++) {
        ValueId square =
            graph_add(g, OP_sumsq, &pairs[i].grad, 1, NULL, name_for(g, "%sumsq.", pairs[i].param),
                      value_node(g, pairs[i].param)->loc);
        const ValueId in[2] = {sum, square};
        sum = i ? graph_add(g, OP_add, in, 2, NULL, "%grad_norm.sum", nowhere) : square;
    }
    ValueId norm = graph_add(g, OP_sqrt, &sum, 1, NULL, "%grad_norm", nowhere);
    graph_add_output(g, "grad_norm", norm);
    return norm;
}

static ValueId add_scalar_input(Graph *g, const char *role, DType dtype)
{
    AttrList attrs = {0};
    attrs_string(&attrs, ATTR_role, role);
    const char *name = pool_printf(g->pool, "%%%s", role);
    return graph_add_source(g, OP_input, type_scalar(dtype), &attrs, name, nowhere);
}

/* The factor on every gradient. */
static ValueId add_clip(Graph *g, ValueId norm)
{
    AttrList attrs = {0};
    if (g->train.clip > 0) {
        attrs_float(&attrs, ATTR_max_norm, g->train.clip);
        return graph_add(g, OP_clip_scale, &norm, 1, &attrs, "%clip", nowhere);
    }
    attrs_float(&attrs, ATTR_value, 1);
    return graph_add_source(g, OP_const, type_scalar(DTYPE_F32), &attrs, "%clip", nowhere);
}

/* A tensor like the parameter, in the same storage order, that starts at zero: "$m.fc1.weight". */
static ValueId add_state(Graph *g, ValueId param, const char *prefix, const char *role)
{
    AttrList attrs = {0};
    attrs_string(&attrs, ATTR_init, "zeros");
    attrs_string(&attrs, ATTR_role, role);
    attrs_string(&attrs, ATTR_of, path_of(g, param));
    int rank;
    const int64_t *perm = node_ints(value_node(g, param), ATTR_perm, &rank);
    if (perm)
        attrs_ints(&attrs, ATTR_perm, perm, rank);
    return graph_add_source(g, OP_state, *value_type(g, param), &attrs, name_for(g, prefix, param),
                            value_node(g, param)->loc);
}

/* Output i of the update overwrites targets[i]. */
static void add_update(Graph *g, OpKind op, const ValueId *in, int n_in, const AttrList *attrs,
                       const ValueId *targets, int n_targets)
{
    ValueId first =
        graph_add(g, op, in, n_in, attrs, name_for(g, "$next.", in[0]), value_node(g, in[0])->loc);
    const Node *node = value_node(g, first);
    for (int i = 0; i < n_targets; i++)
        graph_value(g, node->out[i])->writes = targets[i];
}

static void put_decay(const Graph *g, AttrList *attrs, ValueId param)
{
    bool matrix = value_type(g, param)->rank >= 2;
    if (g->train.weight_decay != 0 && (matrix || !g->train.decay_matrices_only))
        attrs_float(attrs, ATTR_weight_decay, g->train.weight_decay);
}

static void add_sgd(Graph *g, ParamGrad p, ValueId lr, ValueId clip)
{
    AttrList attrs = {0};
    put_decay(g, &attrs, p.param);
    if (g->train.momentum == 0) {
        const ValueId in[4] = {p.param, p.grad, lr, clip};
        add_update(g, OP_sgd_step, in, 4, &attrs, in, 1);
        return;
    }
    attrs_float(&attrs, ATTR_momentum, g->train.momentum);
    if (g->train.dampening != 0)
        attrs_float(&attrs, ATTR_dampening, g->train.dampening);
    if (g->train.nesterov)
        attrs_int(&attrs, ATTR_nesterov, 1);
    ValueId m = add_state(g, p.param, "$m.", "momentum");
    const ValueId in[5] = {p.param, p.grad, m, lr, clip}, targets[2] = {p.param, m};
    add_update(g, OP_sgd_step, in, 5, &attrs, targets, 2);
}

static ValueId binary(Graph *g, OpKind op, ValueId a, ValueId b, const char *name)
{
    const ValueId in[2] = {a, b};
    return graph_add(g, op, in, 2, NULL, name, nowhere);
}

/* factor * a + b; without the product when the factor is 0. */
static ValueId add_scaled(Graph *g, double factor, ValueId a, ValueId b, const char *name)
{
    if (factor == 0)
        return b;
    ValueId k = graph_add_const(g, factor, DTYPE_F32);
    ValueId scaled = binary(g, OP_mul, k, a, pool_printf(g->pool, "%s.scaled", name));
    return binary(g, OP_add, scaled, b, name);
}

/* The formulas of sgd_step in operations of their own: fusion makes the momentum's the epilogue of
 * the product that computes the gradient, which then is no tensor.  The weight follows when nothing
 * reads the old one any more. */
static void add_gradient_free_sgd(Graph *g, ParamGrad p, ValueId lr)
{
    AttrList decay = {0};
    put_decay(g, &decay, p.param);
    ValueId m = add_state(g, p.param, "$m.", "momentum");
    ValueId step = add_scaled(g, decay.n ? g->train.weight_decay : 0, p.param, p.grad,
                              name_for(g, "%decayed.", p.param));
    ValueId velocity = add_scaled(g, g->train.momentum, m, step, name_for(g, "$next.m.", p.param));
    graph_value(g, velocity)->writes = m;
    ValueId move = binary(g, OP_mul, lr, velocity, name_for(g, "%move.", p.param));
    ValueId next = binary(g, OP_sub, p.param, move, name_for(g, "$next.", p.param));
    graph_value(g, next)->writes = p.param;
}

static void add_adam(Graph *g, ParamGrad p, ValueId lr, ValueId clip, ValueId step)
{
    AttrList attrs = {0};
    put_decay(g, &attrs, p.param);
    attrs_float(&attrs, ATTR_beta1, g->train.beta1);
    attrs_float(&attrs, ATTR_beta2, g->train.beta2);
    attrs_float(&attrs, ATTR_eps, g->train.eps);
    if (g->train.optim == OPTIM_ADAMW)
        attrs_int(&attrs, ATTR_decoupled, 1);
    ValueId m = add_state(g, p.param, "$adam_m.", "adam_m");
    ValueId v = add_state(g, p.param, "$adam_v.", "adam_v");
    const ValueId in[7] = {p.param, p.grad, m, v, lr, clip, step}, targets[3] = {p.param, m, v};
    add_update(g, OP_adam_step, in, 7, &attrs, targets, 3);
}

void optim_add_updates(Graph *g, const ParamGrad *pairs, size_t n, ValueId norm)
{
    bool adam = g->train.optim != OPTIM_SGD;
    ValueId lr = add_scalar_input(g, "lr", DTYPE_F32);
    ValueId step = adam ? add_scalar_input(g, "step", DTYPE_I32) : VALUE_NONE;
    ValueId clip = g->train.gradient_free ? VALUE_NONE : add_clip(g, norm);
    for (size_t i = 0; i < n; i++) {
        if (g->train.gradient_free)
            add_gradient_free_sgd(g, pairs[i], lr);
        else if (adam)
            add_adam(g, pairs[i], lr, clip, step);
        else
            add_sgd(g, pairs[i], lr, clip);
    }
}
