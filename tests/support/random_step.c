/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/random_step.h"

#include <string.h>

typedef enum StepKind {
    STEP_RELU,
    STEP_TANH,
    STEP_GELU,
    STEP_ADD,
    STEP_SCALE,
    STEP_LINEAR,
    STEP_NORM,
    STEP_RESHAPE,
    STEP_CONCAT,
    STEP_CENTER,
    STEP_KINDS
} StepKind;

typedef struct StepOp {
    StepKind kind;
    ValueId a, b, weight, out;
    NodeId node;
} StepOp;

typedef struct StepBuilder {
    Graph *g;
    Random random;
    StepOp op[512];
    int n_ops;
    ValueId value[520]; /* forward values [rows, columns]; 0 is the batch */
    int n_values;
    ValueId *grad; /* by forward value */
    ValueId lr, clip;
    struct {
        ValueId weight, grad;
    } update[512];
    int n_updates;
} StepBuilder;

static ValueId step_add(StepBuilder *b, OpKind op, ValueId x, ValueId y, const AttrList *attrs)
{
    ValueId in[2] = {x, y};
    return graph_add(b->g, op, in, y == VALUE_NONE ? 1 : 2, attrs, NULL, (Loc){0});
}

static Type step_matrix(int64_t rows, int64_t columns)
{
    int64_t dims[2] = {rows, columns};
    return type_make(DTYPE_F32, 2, dims);
}

static ValueId step_source(StepBuilder *b, OpKind op, Type t, const char *name)
{
    return graph_add_source(b->g, op, t, NULL, name, (Loc){0});
}

static ValueId step_pick(StepBuilder *b)
{
    int n = b->n_values, recent = n < 6 ? n : 6;
    int k = random_below(&b->random, 4) ? n - 1 - random_below(&b->random, recent)
                                        : random_below(&b->random, n);
    return b->value[k];
}

/* A value of the same shape as a (or, same_rows, as many rows); a itself when there is no other. */
static ValueId step_partner(StepBuilder *b, ValueId a, bool same_rows)
{
    const Type *t = value_type(b->g, a);
    for (int tries = 0; tries < 8; tries++) {
        ValueId v = step_pick(b);
        const Type *u = value_type(b->g, v);
        if (v != a && t->dim[0] == u->dim[0] && (same_rows || t->dim[1] == u->dim[1]))
            return v;
    }
    return a;
}

static ValueId step_reshape(StepBuilder *b, ValueId x, int64_t rows, int64_t columns)
{
    AttrList attrs = {.n = 0};
    int64_t shape[2] = {rows, columns};
    attrs_ints(&attrs, ATTR_shape, shape, 2);
    return step_add(b, OP_reshape, x, VALUE_NONE, &attrs);
}

static ValueId step_center(StepBuilder *b, ValueId x)
{
    AttrList attrs = {.n = 0};
    int64_t axes[1] = {0};
    attrs_ints(&attrs, ATTR_axes, axes, 1);
    ValueId mean = step_add(b, OP_mean, x, VALUE_NONE, &attrs);
    ValueId running = step_source(b, OP_buffer, *value_type(b->g, mean), "$running");
    AttrList momentum = {.n = 0};
    attrs_float(&momentum, ATTR_momentum, 0.1);
    attrs_float(&momentum, ATTR_scale, 1);
    ValueId updated = step_add(b, OP_bn_running, running, mean, &momentum);
    graph_value(b->g, updated)->writes = running;
    return step_add(b, OP_sub, x, mean, NULL);
}

static void step_forward(StepBuilder *b)
{
    StepOp *op = &b->op[b->n_ops++];
    *op = (StepOp){.kind = (StepKind)random_below(&b->random, STEP_KINDS)};
    op->a = op->b = step_pick(b);
    const Type t = *value_type(b->g, op->a);
    AttrList attrs = {.n = 0};
    if (op->kind == STEP_CONCAT && t.dim[1] > 200)
        op->kind = STEP_RELU;
    switch (op->kind) {
    case STEP_RELU:
        op->out = step_add(b, OP_relu, op->a, VALUE_NONE, NULL);
        break;
    case STEP_TANH:
        op->out = step_add(b, OP_tanh, op->a, VALUE_NONE, NULL);
        break;
    case STEP_GELU:
        op->out = step_add(b, OP_gelu, op->a, VALUE_NONE, NULL);
        break;
    case STEP_ADD:
        op->b = step_partner(b, op->a, false);
        op->out = step_add(b, OP_add, op->a, op->b, NULL);
        break;
    case STEP_SCALE:
        op->weight = step_source(b, OP_param, t, "$scale");
        op->out = step_add(b, OP_mul, op->a, op->weight, NULL);
        break;
    case STEP_LINEAR:
        op->weight = step_source(
            b, OP_param, step_matrix(16 << random_below(&b->random, 3), t.dim[1]), "$linear");
        op->out = step_add(b, OP_linear, op->a, op->weight, NULL);
        break;
    case STEP_NORM:
        attrs_float(&attrs, ATTR_eps, 1e-5);
        op->out = step_add(b, OP_layernorm, op->a, VALUE_NONE, &attrs);
        break;
    case STEP_RESHAPE:
        op->out = step_reshape(b, op->a, t.dim[1], t.dim[0]);
        break;
    case STEP_CONCAT:
        op->b = step_partner(b, op->a, true);
        attrs_int(&attrs, ATTR_axis, 1);
        op->out = step_add(b, OP_concat, op->a, op->b, &attrs);
        break;
    case STEP_CENTER:
    case STEP_KINDS:
        op->out = step_center(b, op->a);
        break;
    }
    op->node = graph_value(b->g, op->out)->def;
    b->value[b->n_values++] = op->out;
}

static void step_give(StepBuilder *b, ValueId v, ValueId grad)
{
    b->grad[v] = b->grad[v] == VALUE_NONE ? grad : step_add(b, OP_add, b->grad[v], grad, NULL);
}

static ValueId step_columns(StepBuilder *b, ValueId x, int64_t from, int64_t to)
{
    AttrList attrs = {.n = 0};
    int64_t start[2] = {0, from}, limit[2] = {value_type(b->g, x)->dim[0], to}, step[2] = {1, 1};
    attrs_ints(&attrs, ATTR_start, start, 2);
    attrs_ints(&attrs, ATTR_limit, limit, 2);
    attrs_ints(&attrs, ATTR_step, step, 2);
    return step_add(b, OP_slice, x, VALUE_NONE, &attrs);
}

static void step_backward(StepBuilder *b, const StepOp *op)
{
    ValueId dy = b->grad[op->out];
    const Type t = *value_type(b->g, op->a);
    AttrList ta = {.n = 0};
    attrs_int(&ta, ATTR_ta, 1);
    switch (op->kind) {
    case STEP_RELU:
        step_give(b, op->a, step_add(b, OP_relu_grad, dy, op->out, NULL));
        break;
    case STEP_TANH:
        step_give(b, op->a, step_add(b, OP_tanh_grad, dy, op->out, NULL));
        break;
    case STEP_GELU:
        step_give(b, op->a, step_add(b, OP_gelu_grad, dy, op->a, NULL));
        break;
    case STEP_ADD:
        step_give(b, op->a, dy);
        step_give(b, op->b, dy);
        break;
    case STEP_SCALE:
        step_give(b, op->a, step_add(b, OP_mul, dy, op->weight, NULL));
        b->update[b->n_updates].weight = op->weight;
        b->update[b->n_updates++].grad = step_add(b, OP_mul, dy, op->a, NULL);
        break;
    case STEP_LINEAR:
        step_give(b, op->a, step_add(b, OP_matmul, dy, op->weight, NULL));
        b->update[b->n_updates].weight = op->weight;
        b->update[b->n_updates++].grad = step_add(b, OP_matmul, dy, op->a, &ta);
        break;
    case STEP_NORM: {
        const ValueId *out = graph_node(b->g, op->node)->out;
        ValueId in[4] = {dy, op->a, out[1], out[2]};
        step_give(b, op->a, graph_add(b->g, OP_layernorm_grad, in, 4, NULL, NULL, (Loc){0}));
        break;
    }
    case STEP_RESHAPE:
        step_give(b, op->a, step_reshape(b, dy, t.dim[0], t.dim[1]));
        break;
    case STEP_CONCAT:
        step_give(b, op->a, step_columns(b, dy, 0, t.dim[1]));
        step_give(b, op->b, step_columns(b, dy, t.dim[1], value_type(b->g, dy)->dim[1]));
        break;
    case STEP_CENTER:
    case STEP_KINDS:
        step_give(b, op->a, dy);
        break;
    }
}

static ValueId step_full_mean(StepBuilder *b, ValueId x)
{
    AttrList attrs = {.n = 0};
    int64_t axes[2] = {0, 1};
    attrs_ints(&attrs, ATTR_axes, axes, 2);
    return step_add(b, OP_mean, x, VALUE_NONE, &attrs);
}

/* The loss is the sum of the means of all values that nothing reads; their gradients start the way
 * back. */
static void step_loss(StepBuilder *b)
{
    bool *read = POOL_ARRAY(b->g->pool, b->g->values.len, bool);
    for (int k = 0; k < b->n_ops; k++)
        read[b->op[k].a] = read[b->op[k].b] = true;
    ValueId loss = VALUE_NONE;
    for (int k = 0; k < b->n_values; k++) {
        if (read[b->value[k]])
            continue;
        ValueId mean = step_full_mean(b, b->value[k]);
        loss = loss == VALUE_NONE ? mean : step_add(b, OP_add, loss, mean, NULL);
    }
    graph_add_output(b->g, "loss", loss);
    for (int k = 0; k < b->n_values; k++) {
        if (read[b->value[k]])
            continue;
        const Type *t = value_type(b->g, b->value[k]);
        AttrList attrs = {.n = 0};
        int64_t shape[2] = {t->dim[0], t->dim[1]};
        attrs_ints(&attrs, ATTR_shape, shape, 2);
        b->grad[b->value[k]] = step_add(b, OP_broadcast, b->clip, VALUE_NONE, &attrs);
    }
}

static void step_update(StepBuilder *b, ValueId w, ValueId grad)
{
    ValueId m = step_source(b, OP_state, *value_type(b->g, w), "$momentum");
    AttrList attrs = {.n = 0};
    attrs_float(&attrs, ATTR_momentum, 0.9);
    ValueId in[5] = {w, grad, m, b->lr, b->clip};
    ValueId out = graph_add(b->g, OP_sgd_step, in, 5, &attrs, NULL, (Loc){0});
    const Node *n = value_node(b->g, out);
    graph_value(b->g, n->out[0])->writes = w;
    graph_value(b->g, n->out[1])->writes = m;
}

Graph *random_step(Pool *pool, uint64_t seed, int n_ops)
{
    StepBuilder *b = POOL_NEW(pool, StepBuilder);
    b->g = graph_new(pool, "random");
    b->g->kind = "step";
    b->random.state = seed * 977 + 12345;
    b->value[b->n_values++] = step_source(b, OP_input, step_matrix(32, 48), "%batch.x");
    b->lr = step_source(b, OP_input, type_scalar(DTYPE_F32), "%lr");
    b->clip = step_source(b, OP_input, type_scalar(DTYPE_F32), "%clip");
    for (int k = 0; k < n_ops; k++)
        step_forward(b);
    ValueId measured = b->value[1 + random_below(&b->random, n_ops)];
    graph_add_output(b->g, "metric",
                     step_full_mean(b, step_add(b, OP_abs, measured, VALUE_NONE, NULL)));
    b->grad = POOL_ARRAY(pool, b->g->values.len + 1000, ValueId);
    memset(b->grad, 0xff, (b->g->values.len + 1000) * sizeof *b->grad);
    step_loss(b);
    for (int k = n_ops - 1; k >= 0; k--)
        if (b->grad[b->op[k].out] != VALUE_NONE)
            step_backward(b, &b->op[k]);
    for (int k = 0; k < b->n_updates; k++)
        step_update(b, b->update[k].weight, b->update[k].grad);
    return b->g;
}
