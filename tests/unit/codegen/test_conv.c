/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Convolutions and their gradients of every target of this host against the reference evaluator.
 * SCRIMP_TARGETS: of how many targets. */
#include "check.h"
#include "tests/support/run/exact_case.h"
#include "tests/support/sample.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct Conv {
    int64_t n, c, h, w, k, r, s, groups, stride[2], pad[2], dilation[2];
    bool nhwc, bias;
} Conv;

static void image(int64_t *dim, bool nhwc, int64_t n, int64_t c, int64_t h, int64_t w)
{
    const int64_t channels_last[4] = {n, h, w, c}, channels_first[4] = {n, c, h, w};
    memcpy(dim, nhwc ? channels_last : channels_first, sizeof channels_last);
}

static int64_t result_size(const Conv *q, int axis)
{
    int64_t size = axis ? q->w : q->h, kernel = axis ? q->s : q->r;
    return (size + 2 * q->pad[axis] - q->dilation[axis] * (kernel - 1) - 1) / q->stride[axis] + 1;
}

static AttrList conv_attrs(const Conv *q, const int64_t *hw)
{
    AttrList a = {0};
    attrs_ints(&a, ATTR_stride, q->stride, 2);
    attrs_ints(&a, ATTR_padding, q->pad, 2);
    attrs_ints(&a, ATTR_dilation, q->dilation, 2);
    attrs_int(&a, ATTR_groups, q->groups);
    if (q->nhwc)
        attrs_int(&a, ATTR_nhwc, 1);
    if (hw)
        attrs_ints(&a, ATTR_hw, hw, 2);
    return a;
}

static const char *conv_text(Pool *pool, const char *op, const Conv *q)
{
    return pool_printf(
        pool, "%s %s n%lld c%lld %lldx%lld k%lld %lldx%lld g%lld s%lld,%lld p%lld,%lld d%lld,%lld",
        op, q->nhwc ? "nhwc" : "nchw", (long long)q->n, (long long)q->c, (long long)q->h,
        (long long)q->w, (long long)q->k, (long long)q->r, (long long)q->s, (long long)q->groups,
        (long long)q->stride[0], (long long)q->stride[1], (long long)q->pad[0],
        (long long)q->pad[1], (long long)q->dilation[0], (long long)q->dilation[1]);
}

static void test_op(const Target *target, const Conv *q, OpKind op)
{
    ExactCase c = exact_case_new();
    int64_t x[4], y[4], w[4], bias[1] = {q->k};
    const int64_t hwio[4] = {q->r, q->s, q->c / q->groups, q->k};
    const int64_t oihw[4] = {q->k, q->c / q->groups, q->r, q->s};
    image(x, q->nhwc, q->n, q->c, q->h, q->w);
    image(y, q->nhwc, q->n, q->k, result_size(q, 0), result_size(q, 1));
    memcpy(w, q->nhwc ? hwio : oihw, sizeof w);
    const int64_t size[2] = {q->h, q->w}, kernel[2] = {q->r, q->s};
    AttrList attrs = conv_attrs(q, op == OP_conv2d ? NULL : op == OP_conv2d_dgrad ? size : kernel);
    ValueId in[3] = {exact_case_input(&c, 4, op == OP_conv2d_dgrad ? y : x),
                     exact_case_input(&c, 4, op == OP_conv2d_wgrad ? y : w), VALUE_NONE};
    int n_in = 2;
    if (op == OP_conv2d && q->bias)
        in[n_in++] = exact_case_input(&c, 1, bias);
    ValueId out = graph_add(c.g, op, in, n_in, &attrs, NULL, (Loc){0});
    exact_case_check(&c, out, target, conv_text(c.pool, op_name(op), q));
}

/* From an image of y's size, with output padding where a stride leaves room for it. */
static void test_deconv(const Target *target, const Conv *q)
{
    ExactCase c = exact_case_new();
    int64_t y[4], bias[1] = {q->c}, extra[2];
    const int64_t hwio[4] = {q->r, q->s, q->c / q->groups, q->k};
    const int64_t oihw[4] = {q->k, q->c / q->groups, q->r, q->s};
    image(y, q->nhwc, q->n, q->k, result_size(q, 0), result_size(q, 1));
    AttrList attrs = conv_attrs(q, NULL);
    for (int a = 0; a < 2; a++)
        extra[a] =
            exact_case_pick(0, (q->stride[a] > q->dilation[a] ? q->stride[a] : q->dilation[a]) - 1);
    attrs_ints(&attrs, ATTR_output_padding, extra, 2);
    ValueId in[3] = {exact_case_input(&c, 4, y), exact_case_input(&c, 4, q->nhwc ? hwio : oihw),
                     VALUE_NONE};
    int n_in = 2;
    if (q->bias)
        in[n_in++] = exact_case_input(&c, 1, bias);
    ShapeError err;
    NodeId n = graph_try_add(c.g, OP_deconv2d, in, n_in, &attrs, NULL, (Loc){0}, &err);
    if (n == NODE_NONE) /* all of it is padding */
        pool_free(c.pool);
    else
        exact_case_check(&c, graph_node(c.g, n)->out[0], target, conv_text(c.pool, "deconv2d", q));
}

static void test_conv(const Target *target, const Conv *q)
{
    if (result_size(q, 0) < 1 || result_size(q, 1) < 1)
        return;
    test_op(target, q, OP_conv2d);
    test_op(target, q, OP_conv2d_dgrad);
    test_op(target, q, OP_conv2d_wgrad);
    test_deconv(target, q);
}

static Conv random_conv(int i)
{
    Conv q = {.n = exact_case_pick(1, 3),
              .h = exact_case_pick(3, 13),
              .w = exact_case_pick(3, 17),
              .r = exact_case_pick(1, 4),
              .s = exact_case_pick(1, 4)};
    q.groups = i % 4 == 3 ? exact_case_pick(2, 3) : 1;
    q.c = q.groups * exact_case_pick(1, i % 2 ? 9 : 40);
    q.k = q.groups * exact_case_pick(1, i % 3 ? 20 : 70);
    for (int a = 0; a < 2; a++) {
        q.stride[a] = exact_case_pick(1, 3);
        q.pad[a] = exact_case_pick(0, 2);
        q.dilation[a] = i % 5 == 4 ? exact_case_pick(1, 3) : 1;
    }
    q.nhwc = i % 6 != 5;
    q.bias = i & 1;
    return q;
}

/* n_random 0: a few cases only. */
static void test_target(const Target *target, int n_random)
{
    static const Conv fixed[] = {
        /* n, c, h, w, k, r, s, groups, stride, pad, dilation */
        {2, 16, 12, 16, 40, 3, 3, 1, {1, 1}, {1, 1}, {1, 1}, true, true},
        {4, 8, 7, 7, 16, 3, 3, 1, {1, 1}, {1, 1}, {1, 1}, true, false},
        {4, 5, 2, 2, 9, 3, 3, 1, {1, 1}, {1, 1}, {1, 1}, true, false}, /* units of images */
        {2, 12, 9, 10, 20, 1, 1, 1, {2, 2}, {0, 0}, {1, 1}, true, true},
        {2, 12, 5, 6, 20, 1, 1, 1, {1, 1}, {0, 0}, {1, 1}, true, true},  /* matrix product */
        {2, 21, 6, 7, 21, 3, 3, 21, {1, 1}, {1, 1}, {1, 1}, true, true}, /* depthwise */
        {2, 18, 7, 6, 18, 3, 2, 18, {2, 1}, {1, 0}, {1, 2}, true, false},
        {1, 3, 23, 30, 24, 7, 7, 1, {2, 2}, {3, 3}, {1, 1}, true, false},
        {1, 512, 3, 4, 16, 3, 3, 1, {1, 1}, {1, 1}, {1, 1}, true, false}, /* padded pixels */
        {1, 2, 5, 5, 3, 2, 2, 1, {3, 3}, {2, 2}, {1, 1}, true, false},    /* phases without taps */
        {1, 33, 12, 14, 40, 2, 2, 1, {2, 2}, {0, 0}, {1, 1}, true, true}, /* U-Net's deconvolution
                                                                           */
        {2, 17, 9, 9, 20, 1, 1, 1, {1, 1}, {0, 0}, {2, 1}, true, true},   /* 1x1, yet no product */
    };
    size_t n_fixed = sizeof fixed / sizeof *fixed;
    for (size_t i = 0; i < n_fixed; i++)
        if (n_random || i % 3 == 0)
            test_conv(target, &fixed[i]);
    for (int i = 0; i < n_random; i++) {
        Conv q = random_conv(i);
        test_conv(target, &q);
    }
}

/* Compiling is what takes time: the widest target gets most of the cases. */
int main(int argc, char **argv)
{
    int n_random = argc > 1 ? atoi(argv[1]) : 4;
    int n_targets = sample_number("SCRIMP_TARGETS", INT_MAX);
    for (const char *const *name = target_names(); *name && n_targets > 0; name++)
        if (target_runs_here(target_find(*name))) {
            n_targets--;
            test_target(target_find(*name), n_random);
            n_random = argc > 1 ? n_random : 0;
        }
    return test_result();
}
