/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Optimizer updates as part of the step: rates, clipping, and SGD with momentum, Adam and AdamW in
 * PyTorch's forms (the formulas are with the operations: ir/eval_update.c).  Other optimizers are
 * in optim_rules.c. */
#include "passes/autodiff/optim.h"
#include "passes/autodiff/optim_rules.h"

#include "ir/support/bug.h"
#include "passes/rewrite.h"

#include <string.h>

static const Loc nowhere = {0};

/* "fc1.weight" of "$fc1.weight", also as an update before has left it */
static const char *path_of(const Graph *g, ValueId param)
{
    return graph_value(g, value_storage(g, param))->name + 1;
}

ValueId optim_newest(const Graph *g, ValueId persistent)
{
    for (size_t v = g->values.len; v-- > 0;)
        if (graph_value(g, (ValueId)v)->writes == persistent)
            return (ValueId)v;
    return persistent;
}

static const char *name_for(const Graph *g, const char *prefix, ValueId param)
{
    return pool_printf(g->pool, "%s%s", prefix, path_of(g, param));
}

/* What the updates of a step share. */
typedef struct Updates {
    Graph *g;
    const ParamGrad *pairs;
    size_t n;
    ValueId *square;    /* by pair: the sum of the squares of its gradient */
    ValueId norm;       /* of all gradients; VALUE_NONE with gradient_free */
    ValueId *lr, *clip; /* by group + 1: made when first asked for */
    ValueId step;       /* likewise */
    UpdateTime when;
} Updates;

static int group_of(const Graph *g, ValueId param)
{
    return train_group_of(&g->train, path_of(g, param), value_type(g, param)->rank);
}

static const UpdateRule *rule_of(const Graph *g, ValueId param)
{
    int group = group_of(g, param);
    return group < 0 ? &g->train.rule : &g->train.group[group].rule;
}

/* The group that stands for the parameters of the same loss that are in no other; -1: of the only
 * loss, or the first. */
static int others_of(const Graph *g, ValueId param)
{
    return train_goal_group(&g->train, train_goal_of(&g->train, path_of(g, param)));
}

/* The group whose gradients are clipped together with this one's; -1: all that are in none. */
static int clipped_with(const Graph *g, ValueId param)
{
    int group = group_of(g, param);
    return group >= 0 && g->train.group[group].own_clip ? group : others_of(g, param);
}

/* The norm of the gradients that are clipped together, or of all. */
static ValueId add_norm(const Updates *u, bool all, int together, const char *name)
{
    ValueId sum = VALUE_NONE;
    for (size_t i = 0; i < u->n; i++) {
        if (!all && clipped_with(u->g, u->pairs[i].param) != together)
            continue;
        const ValueId in[2] = {sum, u->square[i]};
        const char *sum_name = pool_printf(u->g->pool, "%s.sum", name);
        sum = sum == VALUE_NONE ? u->square[i]
                                : graph_add(u->g, OP_add, in, 2, NULL, sum_name, nowhere);
    }
    return graph_add(u->g, OP_sqrt, &sum, 1, NULL, name, nowhere);
}

static void add_grad_norm(Updates *u)
{
    u->square = POOL_ARRAY(u->g->pool, u->n, ValueId);
    for (size_t i = 0; i < u->n; i++)
        u->square[i] = graph_add(u->g, OP_sumsq, &u->pairs[i].grad, 1, NULL,
                                 name_for(u->g, "%sumsq.", u->pairs[i].param),
                                 value_node(u->g, u->pairs[i].param)->loc);
    const char *loss = u->when.loss;
    const char *name = loss ? pool_printf(u->g->pool, "grad_norm.%s", loss) : "grad_norm";
    u->norm = add_norm(u, true, -1, pool_printf(u->g->pool, "%%%s", name));
    if (u->when.time + 1 == u->when.times)
        graph_add_output(u->g, name, u->norm);
}

/* The input of that role, made when there is none yet. */
static ValueId scalar_input(Graph *g, const char *role, DType dtype)
{
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (n->op == OP_input && strcmp(node_string(n, ATTR_role, ""), role) == 0)
            return n->out[0];
    }
    AttrList attrs = {0};
    attrs_string(&attrs, ATTR_role, role);
    const char *name = pool_printf(g->pool, "%%%s", role);
    return graph_add_source(g, OP_input, type_scalar(dtype), &attrs, name, nowhere);
}

/* The learning rate of a parameter. */
static ValueId rate_of(Updates *u, ValueId param)
{
    int group = group_of(u->g, param);
    if (group >= 0 && !u->g->train.group[group].own_lr)
        group = others_of(u->g, param);
    ValueId *lr = &u->lr[group + 1];
    if (*lr == VALUE_NONE)
        *lr = scalar_input(u->g, group < 0 ? "lr" : pool_printf(u->g->pool, "lr.%d", group),
                           DTYPE_F32);
    return *lr;
}

static ValueId binary(Graph *g, OpKind op, ValueId a, ValueId b, const char *name)
{
    const ValueId in[2] = {a, b};
    return graph_add(g, op, in, 2, NULL, name, nowhere);
}

/* 1 at the first update; the input counts steps. */
static ValueId step_number(Updates *u)
{
    if (u->step != VALUE_NONE)
        return u->step;
    Graph *g = u->g;
    int64_t times = u->when.times;
    u->step = scalar_input(g, "step", DTYPE_I32);
    if (times > 1) {
        ValueId ends =
            binary(g, OP_mul, u->step, graph_add_const(g, (double)times, DTYPE_I32), "%step.last");
        ValueId left = graph_add_const(g, (double)(times - 1 - u->when.time), DTYPE_I32);
        u->step = binary(g, OP_sub, ends, left, "%step.now");
    }
    return u->step;
}

static bool norms_differ(const TrainSpec *t)
{
    for (int i = 0; i < t->n_groups; i++)
        if (t->group[i].own_clip)
            return true;
    return false;
}

/* The factor on every gradient that is clipped together with those of a group (-1: of none). */
static ValueId add_clip(const Updates *u, int group)
{
    Graph *g = u->g;
    AttrList attrs = {0};
    double clip = group < 0 ? g->train.rule.clip : g->train.group[group].rule.clip;
    const char *name = group < 0 ? "%clip" : pool_printf(g->pool, "%%clip.%d", group);
    if (clip > 0) {
        ValueId norm = u->norm;
        if (norms_differ(&g->train))
            norm = add_norm(u, false, group, pool_printf(g->pool, "%s.norm", name));
        attrs_float(&attrs, ATTR_max_norm, clip);
        return graph_add(g, OP_clip_scale, &norm, 1, &attrs, name, nowhere);
    }
    attrs_float(&attrs, ATTR_value, 1);
    return graph_add_source(g, OP_const, type_scalar(DTYPE_F32), &attrs, name, nowhere);
}

static ValueId clip_of(Updates *u, ValueId param)
{
    int group = clipped_with(u->g, param);
    ValueId *clip = &u->clip[group + 1];
    if (*clip == VALUE_NONE)
        *clip = add_clip(u, group);
    return *clip;
}

const char *optim_name(const Update *u, const char *prefix)
{
    return name_for(u->g, prefix, u->param);
}

/* What an update before has added. */
static ValueId find_state(const Graph *g, const char *role, const char *path)
{
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (n->op == OP_state && strcmp(node_string(n, ATTR_role, ""), role) == 0 &&
            strcmp(node_string(n, ATTR_of, ""), path) == 0)
            return n->out[0];
    }
    BUG("no %s of %s", role, path);
}

ValueId optim_add_state(const Update *u, const char *prefix, const char *role, const char *init)
{
    if (u->again)
        return optim_newest(u->g, find_state(u->g, role, path_of(u->g, u->param)));
    AttrList attrs = {0};
    attrs_string(&attrs, ATTR_init, init);
    attrs_string(&attrs, ATTR_role, role);
    attrs_string(&attrs, ATTR_of, path_of(u->g, u->param));
    int rank;
    ValueId param = value_storage(u->g, u->param);
    const int64_t *perm = node_ints(value_node(u->g, param), ATTR_perm, &rank);
    if (perm)
        attrs_ints(&attrs, ATTR_perm, perm, rank);
    return graph_add_source(u->g, OP_state, *value_type(u->g, u->param), &attrs,
                            optim_name(u, prefix), value_node(u->g, param)->loc);
}

/* Output i of the update overwrites targets[i], or what that is the newest contents of. */
static void add_update(Graph *g, OpKind op, const ValueId *in, int n_in, const AttrList *attrs,
                       const ValueId *targets, int n_targets)
{
    ValueId first =
        graph_add(g, op, in, n_in, attrs, name_for(g, "$next.", in[0]), value_node(g, in[0])->loc);
    const Node *node = value_node(g, first);
    for (int i = 0; i < n_targets; i++)
        graph_value(g, node->out[i])->writes = value_storage(g, targets[i]);
}

bool optim_decays(const Update *u)
{
    bool matrix = value_type(u->g, u->param)->rank >= 2;
    return u->rule->weight_decay != 0 && (matrix || !u->rule->decay_matrices_only);
}

static void put_decay(const Update *u, AttrList *attrs)
{
    if (optim_decays(u))
        attrs_float(attrs, ATTR_weight_decay, u->rule->weight_decay);
}

/* The gradient, scaled by `clip`, with every element between -clip_value and clip_value. */
static ValueId add_clip_value(Graph *g, ParamGrad p, ValueId clip, double bound)
{
    const char *scaled = name_for(g, "%clipped.scaled.", p.param);
    ValueId v = binary(g, OP_mul, p.grad, clip, scaled);
    v = binary(g, OP_minimum, v, graph_add_const(g, bound, DTYPE_F32),
               name_for(g, "%clipped.above.", p.param));
    return binary(g, OP_maximum, v, graph_add_const(g, -bound, DTYPE_F32),
                  name_for(g, "%clipped.", p.param));
}

static void add_sgd(const Update *u)
{
    AttrList attrs = {0};
    put_decay(u, &attrs);
    if (u->rule->momentum == 0) {
        const ValueId in[4] = {u->param, u->grad, u->lr, u->clip};
        add_update(u->g, OP_sgd_step, in, 4, &attrs, in, 1);
        return;
    }
    attrs_float(&attrs, ATTR_momentum, u->rule->momentum);
    if (u->rule->dampening != 0)
        attrs_float(&attrs, ATTR_dampening, u->rule->dampening);
    if (u->rule->nesterov)
        attrs_int(&attrs, ATTR_nesterov, 1);
    ValueId m = optim_add_state(u, "$m.", "momentum", "zeros");
    const ValueId in[5] = {u->param, u->grad, m, u->lr, u->clip}, targets[2] = {u->param, m};
    add_update(u->g, OP_sgd_step, in, 5, &attrs, targets, 2);
}

ValueId optim_add_scaled(Graph *g, double factor, ValueId a, ValueId b, const char *name)
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
static void add_gradient_free_sgd(const Update *u)
{
    Graph *g = u->g;
    ValueId m = optim_add_state(u, "$m.", "momentum", "zeros");
    ValueId step = optim_add_scaled(g, optim_decays(u) ? u->rule->weight_decay : 0, u->param,
                                    u->grad, optim_name(u, "%decayed."));
    ValueId velocity = optim_add_scaled(g, u->rule->momentum, m, step, optim_name(u, "$next.m."));
    graph_value(g, velocity)->writes = value_storage(g, m);
    ValueId move = binary(g, OP_mul, u->lr, velocity, optim_name(u, "%move."));
    ValueId next = binary(g, OP_sub, u->param, move, optim_name(u, "$next."));
    graph_value(g, next)->writes = value_storage(g, u->param);
}

static void add_adam(const Update *u)
{
    AttrList attrs = {0};
    put_decay(u, &attrs);
    attrs_float(&attrs, ATTR_beta1, u->rule->beta1);
    attrs_float(&attrs, ATTR_beta2, u->rule->beta2);
    attrs_float(&attrs, ATTR_eps, u->rule->eps);
    if (u->rule->optim == OPTIM_ADAMW)
        attrs_int(&attrs, ATTR_decoupled, 1);
    ValueId m = optim_add_state(u, "$adam_m.", "adam_m", "zeros");
    ValueId v = optim_add_state(u, "$adam_v.", "adam_v", "zeros");
    const ValueId in[7] = {u->param, u->grad, m, v, u->lr, u->clip, u->step};
    const ValueId targets[3] = {u->param, m, v};
    add_update(u->g, OP_adam_step, in, 7, &attrs, targets, 3);
}

typedef void AddUpdate(const Update *u);
static AddUpdate *const update_of[] = {
    [OPTIM_SGD] = add_sgd,
    [OPTIM_ADAM] = add_adam,
    [OPTIM_ADAMW] = add_adam,
    [OPTIM_RMSPROP] = optim_add_rmsprop,
    [OPTIM_ADAGRAD] = optim_add_adagrad,
    [OPTIM_LION] = optim_add_lion,
    [OPTIM_LAMB] = optim_add_lamb,
    [OPTIM_ADAFACTOR] = optim_add_adafactor,
    [OPTIM_MUON] = optim_add_muon,
};

static void add_one(Updates *all, ParamGrad p)
{
    Graph *g = all->g;
    const UpdateRule *rule = rule_of(g, p.param);
    Update u = {
        .g = g, .rule = rule, .param = p.param, .grad = p.grad, .again = all->when.time > 0};
    u.lr = rate_of(all, p.param);
    u.step = train_counts_steps(rule) ? step_number(all) : VALUE_NONE;
    if (g->train.rule.gradient_free) {
        add_gradient_free_sgd(&u);
        return;
    }
    u.clip = clip_of(all, p.param);
    if (rule->clip_value > 0) {
        u.grad = add_clip_value(g, p, u.clip, rule->clip_value);
        u.clip = graph_add_const(g, 1, DTYPE_F32);
    }
    update_of[rule->optim](&u);
}

/* How much of a parameter its running mean takes in: all after the first update, so that it begins
 * with the weights, as torch.optim.swa_utils.AveragedModel. */
static ValueId average_weight(Updates *u)
{
    Graph *g = u->g;
    ValueId t = step_number(u);
    ValueId first = binary(g, OP_le, t, graph_add_const(g, 1, DTYPE_I32), "%ema.first");
    const ValueId in[3] = {first, graph_add_const(g, 1, DTYPE_F32),
                           graph_add_const(g, 1 - g->train.ema, DTYPE_F32)};
    return graph_add(g, OP_select, in, 3, NULL, "%ema.weight", nowhere);
}

static void add_averages(Updates *u)
{
    Graph *g = u->g;
    ValueId weight = average_weight(u);
    ValueId *next =
        POOL_ARRAY(g->pool, g->values.len, ValueId); /* by parameter: after the update */
    size_t n_values = g->values.len;
    for (size_t v = 0; v < n_values; v++)
        if (graph_value(g, (ValueId)v)->writes != VALUE_NONE)
            next[graph_value(g, (ValueId)v)->writes] = (ValueId)v;
    for (size_t i = 0; i < u->n; i++) {
        const Update one = {.g = g, .param = u->pairs[i].param};
        optim_add_average(&one, next[value_storage(g, one.param)], weight);
    }
}

static ValueId *none_yet(Graph *g)
{
    size_t n = (size_t)g->train.n_groups + 1;
    ValueId *v = POOL_ARRAY(g->pool, n, ValueId);
    for (size_t i = 0; i < n; i++)
        v[i] = VALUE_NONE;
    return v;
}

void optim_add_updates(Graph *g, const ParamGrad *pairs, size_t n, UpdateTime when)
{
    Updates u = {
        .g = g, .pairs = pairs, .n = n, .norm = VALUE_NONE, .step = VALUE_NONE, .when = when};
    u.lr = none_yet(g);
    u.clip = none_yet(g);
    if (!g->train.rule.gradient_free) /* nothing else reads gradients: they need no storage */
        add_grad_norm(&u);
    for (size_t i = 0; i < n; i++)
        add_one(&u, pairs[i]);
    if (g->train.ema > 0 && when.time + 1 == when.times)
        add_averages(&u);
}

bool optim_is_frozen(const Graph *g, ValueId param)
{
    int group = group_of(g, param);
    return group >= 0 && g->train.group[group].frozen;
}
