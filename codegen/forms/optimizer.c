/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Optimizer steps, running statistics and gradient clipping: element-wise programs built by hand.
 * Weights and state are updated in place: all loads of a vector come before its stores. */
#include "codegen/forms/point.h"

/* A program under construction over the shape of the node's first output. */
typedef struct Build {
    PointProgram *p;
    Lowering *l;
    const Node *node;
    CallBuf buf[16];
    int n;
} Build;

static Build build(Lowering *l, const Node *node)
{
    Build b = {.l = l, .node = node};
    b.p = point_program(l->pool, value_type(l->graph, node->out[0]));
    return b;
}

static PointAccess access_to(Build *b, ValueId v)
{
    b->buf[b->n] = (CallBuf){v, 0};
    return point_access(b->p, b->n++, value_type(b->l->graph, v), -1);
}

static int input(Build *b, int i)
{
    ValueId v = b->node->in[i];
    const Node *def = value_node(b->l->graph, v);
    if (def->op == OP_const)
        return point_const(b->p, value_type(b->l->graph, v)->dtype, node_float(def, ATTR_value, 0));
    return point_load(b->p, access_to(b, v));
}

static void output(Build *b, int i, int reg)
{
    point_store(b->p, reg, access_to(b, b->node->out[i]));
}

static void finish(Build *b)
{
    const Node *n = b->node;
    point_call(b->l, b->p, op_name(n->op), b->buf, b->n, node_flops(b->l->graph, n));
}

static int constant(Build *b, double v)
{
    return point_const(b->p, DTYPE_F32, v);
}

static int add(Build *b, int x, int y)
{
    return point_binary(b->p, OP_add, x, y);
}

static int sub(Build *b, int x, int y)
{
    return point_binary(b->p, OP_sub, x, y);
}

static int mul(Build *b, int x, int y)
{
    return point_binary(b->p, OP_mul, x, y);
}

static int divide(Build *b, int x, int y)
{
    return point_binary(b->p, OP_div, x, y);
}

/* k * x, without code when k is 1; k * x + y without it when k is 0. */
static int scaled(Build *b, double k, int x)
{
    return k == 1 ? x : mul(b, constant(b, k), x);
}

static int add_scaled(Build *b, double k, int x, int y)
{
    return k == 0 ? y : add(b, scaled(b, k, x), y);
}

/* torch.optim.SGD; formulas as in ir/eval_update.c */
void point_sgd_step(Lowering *l, const Node *node)
{
    Build b = build(l, node);
    bool has_m = node->n_in == 5;
    int w = input(&b, 0), g = input(&b, 1), m = has_m ? input(&b, 2) : -1;
    int lr = input(&b, node->n_in - 2), clip = input(&b, node->n_in - 1);
    double momentum = node_float(node, ATTR_momentum, 0);
    int step = add_scaled(&b, node_float(node, ATTR_weight_decay, 0), w, mul(&b, g, clip));
    int velocity = -1;
    if (has_m) {
        int fresh = scaled(&b, 1 - node_float(node, ATTR_dampening, 0), step);
        velocity = add_scaled(&b, momentum, m, fresh);
        step = node_flag(node, ATTR_nesterov) ? add_scaled(&b, momentum, velocity, step) : velocity;
    }
    output(&b, 0, sub(&b, w, mul(&b, lr, step)));
    if (has_m)
        output(&b, 1, velocity);
    finish(&b);
}

/* 1 - beta^step */
static int correction(Build *b, double beta, int step)
{
    PointInstr i = {.op = POINT_ONE_MINUS_POWER,
                    .dtype = DTYPE_F32,
                    .from = b->p->instr.data[step].dtype,
                    .n_in = 1,
                    .in = {step},
                    .a = beta};
    return point_push(b->p, i);
}

/* beta * mean + (1 - beta) * x.  In f32 the two factors do not sum up to 1: with both of them the
 * mean of equal values would drift away from these, by 2.4e-7 of itself where beta is 0.9. */
static int moving_mean(Build *b, double beta, int mean, int x)
{
    if (beta < 0.5)
        return add_scaled(b, beta, sub(b, mean, x), x);
    return add_scaled(b, 1 - beta, sub(b, x, mean), mean);
}

/* What depends on scalars only is computed once per kernel call: lr / correction1 and 1 /
 * sqrt(correction2). */
void point_adam_step(Lowering *l, const Node *node)
{
    Build b = build(l, node);
    int w = input(&b, 0), g = input(&b, 1), m = input(&b, 2), v = input(&b, 3);
    int lr = input(&b, 4), clip = input(&b, 5), step = input(&b, 6);
    double beta1 = node_float(node, ATTR_beta1, 0.9), beta2 = node_float(node, ATTR_beta2, 0.999);
    double decay = node_float(node, ATTR_weight_decay, 0);
    bool decoupled = node_flag(node, ATTR_decoupled);
    int rate = divide(&b, lr, correction(&b, beta1, step));
    int root = point_unary(b.p, OP_rsqrt, correction(&b, beta2, step));
    int grad = add_scaled(&b, decoupled ? 0 : decay, w, mul(&b, g, clip));
    int kept = w;
    if (decoupled && decay != 0)
        kept = mul(&b, w, sub(&b, constant(&b, 1), scaled(&b, decay, lr)));
    int m1 = moving_mean(&b, beta1, m, grad);
    int v1 = add_scaled(&b, beta2, v, mul(&b, scaled(&b, 1 - beta2, grad), grad));
    int size = mul(&b, point_unary(b.p, OP_sqrt, v1), root);
    size = add(&b, size, constant(&b, node_float(node, ATTR_eps, 1e-8)));
    output(&b, 0, sub(&b, kept, divide(&b, mul(&b, rate, m1), size)));
    output(&b, 1, m1);
    output(&b, 2, v1);
    finish(&b);
}

void point_bn_running(Lowering *l, const Node *node)
{
    Build b = build(l, node);
    double momentum = node_float(node, ATTR_momentum, 0.1);
    int running = input(&b, 0), statistic = input(&b, 1);
    int fresh = scaled(&b, momentum * node_float(node, ATTR_scale, 1), statistic);
    output(&b, 0, add_scaled(&b, 1 - momentum, running, fresh));
    finish(&b);
}

/* min(1, max_norm / (norm + 1e-6)); a NaN norm stays NaN */
void point_clip_scale(Lowering *l, const Node *node)
{
    Build b = build(l, node);
    int norm = add(&b, input(&b, 0), constant(&b, 1e-6));
    int scale = divide(&b, constant(&b, node_float(node, ATTR_max_norm, 1)), norm);
    output(&b, 0, point_binary(b.p, OP_minimum, constant(&b, 1), scale));
    finish(&b);
}
