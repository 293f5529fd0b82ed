/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The reference evaluator: runs a graph's nodes in order, one rule an operation. */
#include "ir/eval_internal.h"
#include "ir/loop.h"

#include <math.h>
#include <string.h>

static EvalRule *const eval_table[OP_COUNT] = {
#define OP(name, min_in, max_in, n_out, op_class, shape, flops, grad, eval, ...)                   \
    [OP_##name] = eval_##eval,
#include "ir/ops.def"
#undef OP
};

EvalState *eval_new(Pool *pool, const Graph *g)
{
    EvalState *s = POOL_NEW(pool, EvalState);
    s->pool = pool;
    s->graph = g;
    s->data = POOL_ARRAY(pool, g->values.len, double *);
    return s;
}

/* Buffers are kept from run to run, so that a graph can be evaluated thousands of times. */
static double *buffer_of(EvalState *s, ValueId v)
{
    if (!s->data[v])
        s->data[v] =
            POOL_ARRAY(s->pool, (size_t)type_elements(value_type(s->graph, v)) + 1, double);
    return s->data[v];
}

void eval_set(EvalState *s, ValueId v, const double *data)
{
    int64_t count = type_elements(value_type(s->graph, v));
    memcpy(buffer_of(s, v), data, (size_t)count * sizeof *data);
}

const double *eval_get(const EvalState *s, ValueId v)
{
    if (!s->data[v])
        BUG("evaluator: value %s has not been computed", graph_value(s->graph, v)->name);
    return s->data[v];
}

double eval_to_dtype(DType dtype, double value)
{
    double low = 0, high = 1;
    switch (dtype) {
    case DTYPE_I32:
        low = INT32_MIN, high = INT32_MAX;
        break;
    case DTYPE_I64:
        low = -0x1p63, high = 0x1p63;
        break;
    case DTYPE_U8:
        high = UINT8_MAX;
        break;
    case DTYPE_BOOL:
        return value != 0 ? 1 : 0;
    case DTYPE_F32:
    case DTYPE_F16:
    case DTYPE_BF16:
    case DTYPE_COUNT:
        return value;
    }
    value = trunc(value);
    return value < low ? low : value > high ? high : value;
}

/* To 8 bits, ties to even; below 2^-126 to multiples of 2^-133. */
double eval_round_bf16(double value)
{
    int exponent;
    if (!isfinite(value) || value == 0)
        return value;
    frexp(value, &exponent);
    double unit = ldexp(1, exponent - 8 < -133 ? -133 : exponent - 8);
    double rounded = nearbyint(value / unit) * unit;
    return fabs(rounded) < 0x1p128 ? rounded : copysign((double)INFINITY, value);
}

/* The rounding of bf16 is a part of what an operation means; that of f32 only where it is asked
 * for. */
static void round_value(const EvalState *s, ValueId v, bool round_f32)
{
    DType dtype = value_type(s->graph, v)->dtype;
    if (dtype != DTYPE_BF16 && !(dtype == DTYPE_F32 && round_f32))
        return;
    int64_t count = type_elements(value_type(s->graph, v));
    for (int64_t i = 0; i < count; i++)
        s->data[v][i] =
            dtype == DTYPE_BF16 ? eval_round_bf16(s->data[v][i]) : (double)(float)s->data[v][i];
}

/* Runs a fused node's body on its own state, inputs and outputs copied by position. */
static void run_fused(EvalState *s, const Node *n, bool round_f32)
{
    const Graph *body = n->body;
    Pool *scratch = pool_new_child(s->pool);
    EvalState *inner = eval_new(scratch, body);
    int next = 0;
    for (size_t i = 0; i < body->order.len; i++) {
        const Node *source = graph_node(body, body->order.data[i]);
        if (source->op == OP_input)
            eval_set(inner, source->out[0], eval_in(s, n, next++));
    }
    if (next != n->n_in)
        BUG("evaluator: fused node has %d inputs, its body %d", n->n_in, next);
    eval_run(inner, round_f32);
    for (int i = 0; i < n->n_out; i++)
        memcpy(eval_out(s, n, i), eval_get(inner, body->outputs.data[i].value),
               (size_t)eval_out_count(s, n, i) * sizeof(double));
    pool_free(scratch);
}

void eval_fused(EvalState *s, const Node *n)
{
    run_fused(s, n, false);
}

/* Runs a loop's body step by step on one state of its own. */
static void run_loop(EvalState *s, const Node *n, bool round_f32)
{
    const Graph *body = n->body;
    const LoopShape shape = loop_shape(n);
    Pool *scratch = pool_new_child(s->pool);
    EvalState *inner = eval_new(scratch, body);
    for (int i = 0; i < n->n_in; i++)
        if (i < shape.carries || i >= shape.carries + shape.slices)
            eval_set(inner, loop_body_input(body, i), eval_in(s, n, i));
    for (int64_t k = 0; k < shape.steps; k++) {
        int64_t t = shape.reverse ? shape.steps - 1 - k : k;
        for (int i = shape.carries; i < shape.carries + shape.slices; i++) {
            int64_t each = eval_in_count(s, n, i) / shape.steps;
            eval_set(inner, loop_body_input(body, i), eval_in(s, n, i) + t * each);
        }
        eval_run(inner, round_f32);
        for (int i = 0; i < n->n_out; i++) {
            int64_t each = eval_out_count(s, n, i) / (i < shape.carries ? 1 : shape.steps);
            memcpy(eval_out(s, n, i) + (i < shape.carries ? 0 : t * each),
                   eval_get(inner, body->outputs.data[i].value), (size_t)each * sizeof(double));
        }
        for (int i = 0; i < shape.carries; i++)
            eval_set(inner, loop_body_input(body, i), eval_out(s, n, i));
    }
    pool_free(scratch);
}

void eval_loop(EvalState *s, const Node *n)
{
    run_loop(s, n, false);
}

/* Sources but constants are given by the caller. */
void eval_declared(EvalState *s, const Node *n)
{
    if (!s->data[n->out[0]])
        BUG("evaluator: %s has not been set", graph_value(s->graph, n->out[0])->name);
}

static void run_node(EvalState *s, const Node *n, bool round_f32)
{
    EvalRule *rule = eval_table[n->op];
    if (rule != eval_declared)
        for (int i = 0; i < n->n_out; i++)
            buffer_of(s, n->out[i]);
    if (n->op == OP_fused)
        run_fused(s, n, round_f32);
    else if (n->op == OP_loop)
        run_loop(s, n, round_f32);
    else
        rule(s, n);
    for (int i = 0; i < n->n_out && rule != eval_declared; i++)
        round_value(s, n->out[i], round_f32);
}

void eval_run(EvalState *s, bool round_f32)
{
    const Graph *g = s->graph;
    for (size_t i = 0; i < g->order.len; i++)
        run_node(s, graph_node(g, g->order.data[i]), round_f32);
}

void eval_commit(EvalState *s)
{
    const Graph *g = s->graph;
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        for (int j = 0; j < n->n_out; j++) {
            ValueId target = graph_value(g, n->out[j])->writes;
            if (target != VALUE_NONE)
                eval_set(s, target, s->data[n->out[j]]);
        }
    }
}

void eval_strides(const Type *t, int64_t *stride)
{
    int64_t step = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= t->dim[i];
    }
}

EvalWalk eval_walk(const Type *shape)
{
    EvalWalk w = {.rank = shape->rank};
    memcpy(w.dim, shape->dim, sizeof w.dim);
    return w;
}

void eval_walk_strided(EvalWalk *w, const int64_t *stride, int64_t start)
{
    int k = w->n_operands++;
    memcpy(w->stride[k], stride, (size_t)w->rank * sizeof *stride);
    w->at[k] = start;
}

void eval_walk_broadcast(EvalWalk *w, const Type *operand)
{
    int64_t own[TYPE_MAX_RANK], stride[TYPE_MAX_RANK] = {0};
    eval_strides(operand, own);
    int shift = w->rank - operand->rank;
    for (int i = 0; i < operand->rank; i++)
        stride[i + shift] = operand->dim[i] == 1 ? 0 : own[i];
    eval_walk_strided(w, stride, 0);
}

void eval_walk_next(EvalWalk *w)
{
    for (int axis = w->rank - 1; axis >= 0; axis--) {
        for (int k = 0; k < w->n_operands; k++)
            w->at[k] += w->stride[k][axis];
        if (++w->index[axis] < w->dim[axis])
            return;
        for (int k = 0; k < w->n_operands; k++)
            w->at[k] -= w->stride[k][axis] * w->dim[axis];
        w->index[axis] = 0;
    }
}

EvalAxis eval_axis(const Type *t, const Node *n, int64_t otherwise)
{
    int64_t axis = node_int(n, ATTR_axis, otherwise);
    if (axis < 0)
        axis += t->rank;
    EvalAxis a = {1, t->dim[axis], 1};
    for (int i = 0; i < t->rank; i++)
        if (i != axis)
            *(i < axis ? &a.outer : &a.inner) *= t->dim[i];
    return a;
}

EvalImage eval_image(const Type *t, bool nhwc)
{
    const int64_t *d = t->dim;
    EvalImage m = {d[0], d[1], d[2], d[3], d[1] * d[2] * d[3], d[2] * d[3], d[3], 1};
    if (nhwc) {
        EvalImage last = {d[0], d[3], d[1], d[2], d[1] * d[2] * d[3], 1, d[2] * d[3], d[3]};
        m = last;
    }
    return m;
}
