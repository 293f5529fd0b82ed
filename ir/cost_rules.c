/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What operations cost.  A multiply-add is two flops; a transcendental or otherwise heavy
 * element-wise operation counts HEAVY_FLOPS, about what its vectorised polynomial costs. */
#include "ir/attention.h"
#include "ir/loop.h"
#include "ir/op_rules.h"
#include "ir/random.h"
#include "ir/winograd.h"

enum { HEAVY_FLOPS = 10, NORM_FLOPS = 5 };

static double elements(const Graph *g, ValueId v)
{
    const Type *t = value_type(g, v);
    double n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= (double)t->dim[i];
    return n;
}

/* Elements of the largest operand: the result of element-wise operations, the input of reductions.
 */
static double touched(const Graph *g, const Node *n)
{
    double most = 0;
    for (int i = 0; i < n->n_in; i++) {
        double e = elements(g, n->in[i]);
        most = e > most ? e : most;
    }
    for (int i = 0; i < n->n_out; i++) {
        double e = elements(g, n->out[i]);
        most = e > most ? e : most;
    }
    return most;
}

double flops_zero(const Graph *g, const Node *n)
{
    (void)g, (void)n;
    return 0;
}

double flops_point(const Graph *g, const Node *n)
{
    return touched(g, n);
}

double flops_heavy(const Graph *g, const Node *n)
{
    return HEAVY_FLOPS * touched(g, n);
}

/* The generator, as in dropout; of normal numbers a logarithm, a root and a sine as well. */
double flops_random(const Graph *g, const Node *n)
{
    return (random_kind(n) == RANDOM_NORMAL ? 4 : 1) * HEAVY_FLOPS * elements(g, n->out[0]);
}

double flops_bn(const Graph *g, const Node *n)
{
    return NORM_FLOPS * elements(g, n->in[0]);
}

double flops_matmul(const Graph *g, const Node *n)
{
    const Type *a = value_type(g, n->in[0]);
    int64_t k = a->dim[a->rank - (node_flag(n, ATTR_ta) ? 2 : 1)];
    return 2 * elements(g, n->out[0]) * (double)k;
}

double flops_linear(const Graph *g, const Node *n)
{
    const Type *x = value_type(g, n->in[0]);
    double bias = n->n_in > 2 ? 1 : 0;
    return elements(g, n->out[0]) * (2 * (double)x->dim[x->rank - 1] + bias);
}

/* Multiply-adds for one output channel at one place: C/groups * R * S. */
static double filter_taps(const Node *n, const Type *w)
{
    double taps = 1;
    int k_axis = node_flag(n, ATTR_nhwc) ? 3 : 0;
    for (int i = 0; i < 4; i++)
        taps *= i == k_axis ? 1 : (double)w->dim[i];
    return taps;
}

/* 0: the node has the direct form. */
static double winograd_flops(const Graph *g, const Node *n)
{
    int m = winograd_of(n);
    WinogradShape s = m ? winograd_shape(g, n, m) : (WinogradShape){0};
    return m ? 2 * winograd_work(&s) : 0;
}

double flops_conv2d(const Graph *g, const Node *n)
{
    double bias = n->n_in > 2 ? 1 : 0;
    if (winograd_of(n))
        return winograd_flops(g, n) + bias * elements(g, n->out[0]);
    return elements(g, n->out[0]) * (2 * filter_taps(n, value_type(g, n->in[1])) + bias);
}

double flops_conv2d_dgrad(const Graph *g, const Node *n)
{
    if (winograd_of(n))
        return winograd_flops(g, n);
    return 2 * elements(g, n->in[0]) * filter_taps(n, value_type(g, n->in[1]));
}

/* Every element of the input meets the whole filter. */
double flops_deconv2d(const Graph *g, const Node *n)
{
    return flops_conv2d_dgrad(g, n) + (n->n_in > 2 ? elements(g, n->out[0]) : 0);
}

double flops_conv2d_wgrad(const Graph *g, const Node *n)
{
    if (winograd_of(n))
        return winograd_flops(g, n);
    return 2 * elements(g, n->in[1]) * filter_taps(n, value_type(g, n->out[0]));
}

/* One operation for each element of each window. */
double flops_pool(const Graph *g, const Node *n)
{
    bool forward = n->op == OP_maxpool || n->op == OP_maxpool_index || n->op == OP_avgpool;
    double windows = elements(g, forward ? n->out[0] : n->in[0]);
    return windows * (double)node_ints_at(n, ATTR_kernel, 0, 1) *
           (double)node_ints_at(n, ATTR_kernel, 1, 1);
}

/* Height (axis 0) or width of an image. */
static int64_t image_size(const Graph *g, const Node *n, ValueId v, int axis)
{
    return value_type(g, v)->dim[(node_flag(n, ATTR_nhwc) ? 1 : 2) + axis];
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* One operation for each element of each window.  Where the end of one of `to` windows is not an
 * end of an element, that element lies in two windows. */
double flops_adaptive(const Graph *g, const Node *n)
{
    bool forward = n->op == OP_adaptive_avgpool;
    ValueId x = forward ? n->in[0] : n->out[0], y = forward ? n->out[0] : n->in[0];
    double sum = elements(g, y);
    for (int axis = 0; axis < 2; axis++) {
        int64_t from = image_size(g, n, x, axis), to = image_size(g, n, y, axis);
        double shared = (double)(to - common_divisor(from, to));
        sum *= ((double)from + shared) / (double)to;
    }
    return sum;
}

/* A multiply-add for each of the four neighbours; nearest only copies, or adds in its gradient. */
double flops_resize(const Graph *g, const Node *n)
{
    double pixels = elements(g, n->op == OP_resize ? n->out[0] : n->in[0]);
    if (node_flag(n, ATTR_nearest))
        return n->op == OP_resize ? 0 : pixels;
    return 8 * pixels;
}

/* A power, and the sum over a window, or two of them. */
double flops_lrn(const Graph *g, const Node *n)
{
    double window = (double)node_int(n, ATTR_window, 5);
    return elements(g, n->out[0]) * (HEAVY_FLOPS + (n->op == OP_lrn ? 1 : 2) * window);
}

/* Two products forward; backward the scores, the gradient of the probabilities, and three more. */
double flops_attention(const Graph *g, const Node *n)
{
    AttentionShape a = attention_shape(g, n);
    double width = (double)a.width, value_width = (double)a.value_width;
    double products = a.grad ? 3 * width + 2 * value_width : width + value_width;
    double point = HEAVY_FLOPS * (a.drops ? 2 : 1) + NORM_FLOPS;
    return attention_scores(&a) * (2 * products + point);
}

double flops_fused(const Graph *g, const Node *n)
{
    (void)g;
    return n->body ? graph_flops(n->body) : 0;
}

double flops_loop(const Graph *g, const Node *n)
{
    (void)g;
    return n->body ? graph_flops(n->body) * (double)node_int(n, ATTR_steps, 1) : 0;
}

double node_flops(const Graph *g, const Node *n)
{
    return op_table[n->op].flops(g, n);
}

double graph_flops(const Graph *g)
{
    double sum = 0;
    for (size_t i = 0; i < g->order.len; i++)
        sum += node_flops(g, graph_node(g, g->order.data[i]));
    return sum;
}

/* What its body moves in all steps. */
static int64_t loop_bytes_moved(const Node *loop)
{
    int64_t step = 0, bytes;
    for (size_t i = 0; i < loop->body->order.len; i++) {
        const Node *n = graph_node(loop->body, loop->body->order.data[i]);
        if (!size_add(step, node_bytes_moved(loop->body, n), &step))
            return INT64_MAX;
    }
    return size_mul(step, node_int(loop, ATTR_steps, 1), &bytes) ? bytes : INT64_MAX;
}

int64_t node_bytes_moved(const Graph *g, const Node *n)
{
    int64_t bytes = 0;
    if (node_is_loop(n))
        return loop_bytes_moved(n);
    OpClass c = op_table[n->op].op_class;
    if (c == OP_CLASS_SOURCE || c == OP_CLASS_VIEW)
        return 0;
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        ValueId v = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
        if (!size_add(bytes, type_bytes(value_type(g, v)), &bytes))
            return INT64_MAX;
    }
    return bytes;
}
