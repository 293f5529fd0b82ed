/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random cases for the gradient check, one generator for every operation that has a gradient rule:
 * that of op_cases.h, drawn small, or one of its own where values must keep off kinks and ties. */
#include "op_cases.h"

static const Loc case_nowhere = {0};

static ValueId normal_input(OpCase *c, Type t)
{
    return op_floats(c, t, -2, 2);
}

/* Values off a kink at 0. */
static ValueId kinkless_input(OpCase *c, Type t)
{
    double *data;
    ValueId v = op_source(c, t, &data);
    for (int64_t i = 0; i < type_elements(&t); i++)
        data[i] = op_uniform(c, 0.1, 2) * (op_coin(c) ? 1 : -1);
    return v;
}

/* Values off kinks at -at and at. */
static ValueId off_kinks(OpCase *c, Type t, double at)
{
    double *data;
    ValueId v = op_source(c, t, &data);
    for (int64_t i = 0; i < type_elements(&t); i++)
        data[i] = (op_coin(c) ? op_uniform(c, 0, at - 0.1) : op_uniform(c, at + 0.1, at + 1)) *
                  (op_coin(c) ? 1 : -1);
    return v;
}

/* Multiples of 0.1, plus `shift`, all different, in random order. */
static ValueId distinct_input(OpCase *c, Type t, double shift)
{
    double *data;
    ValueId v = op_source(c, t, &data);
    int64_t n = type_elements(&t);
    for (int64_t i = 0; i < n; i++) {
        int64_t j = op_int(c, 0, i);
        data[i] = data[j];
        data[j] = 0.1 * (double)(i - n / 2) + shift;
    }
    return v;
}

/* Element-wise operations of one input, drawn from low..high or off the kink at 0. */
#define GRAD1(name, make)                                                                          \
    static void case_##name(OpCase *c)                                                             \
    {                                                                                              \
        Type t = op_shape(c, 0, 4);                                                                \
        (void)make;                                                                                \
        op_done(c, OP_##name, NULL);                                                               \
    }
GRAD1(neg, normal_input(c, t))
GRAD1(abs, kinkless_input(c, t))
GRAD1(exp, normal_input(c, t))
GRAD1(log, op_floats(c, t, 0.3, 3))
GRAD1(sqrt, op_floats(c, t, 0.3, 3))
GRAD1(rsqrt, op_floats(c, t, 0.3, 3))
GRAD1(sin, normal_input(c, t))
GRAD1(cos, normal_input(c, t))
GRAD1(tanh, normal_input(c, t))
GRAD1(sigmoid, normal_input(c, t))
GRAD1(relu, kinkless_input(c, t))
GRAD1(silu, normal_input(c, t))
GRAD1(erf, normal_input(c, t))
GRAD1(mish, normal_input(c, t))
GRAD1(hardswish, off_kinks(c, t, 3))

/* alpha or beta, low..high */
#define GRAD1_NUMBER(name, key, low, high, make)                                                   \
    static void case_##name(OpCase *c)                                                             \
    {                                                                                              \
        AttrList attrs = {0};                                                                      \
        Type t = op_shape(c, 0, 4);                                                                \
        attrs_float(&attrs, key, op_uniform(c, low, high));                                        \
        (void)make;                                                                                \
        op_done(c, OP_##name, &attrs);                                                             \
    }
GRAD1_NUMBER(leaky_relu, ATTR_alpha, -1, 1, kinkless_input(c, t))
GRAD1_NUMBER(elu, ATTR_alpha, 0, 2, kinkless_input(c, t))
GRAD1_NUMBER(softplus, ATTR_beta, 0.5, 2, normal_input(c, t))

/* Between the bounds and outside of them. */
static void case_clamp(OpCase *c)
{
    AttrList attrs = {0};
    int64_t which = op_int(c, 1, 3);
    if (which & 1)
        attrs_float(&attrs, ATTR_min, -1);
    if (which & 2)
        attrs_float(&attrs, ATTR_max, 1);
    if (op_coin(c))
        attrs_int(&attrs, ATTR_open, 1);
    off_kinks(c, op_shape(c, 0, 4), 1);
    op_done(c, OP_clamp, &attrs);
}

/* Through another float type and back, so that the result can be weighed.  The reference rounds to
 * bf16, and a rounded function has no differences to compare with. */
static void case_cast(OpCase *c)
{
    static const char *const types[] = {"f32", "f16"};
    AttrList there = {0}, back = {0};
    attrs_string(&there, ATTR_dtype, types[op_int(c, 0, 1)]);
    attrs_string(&back, ATTR_dtype, "f32");
    ValueId x = normal_input(c, op_shape(c, 0, 4));
    ValueId y = graph_add(c->g, OP_cast, &x, 1, &there, NULL, case_nowhere);
    op_on(c, OP_cast, &y, 1, &back);
}

#define GRAD2(name, make_a, make_b)                                                                \
    static void case_##name(OpCase *c)                                                             \
    {                                                                                              \
        Type a, b;                                                                                 \
        op_pair(c, op_shape(c, 0, 4), &a, &b);                                                     \
        (void)make_a, (void)make_b;                                                                \
        op_done(c, OP_##name, NULL);                                                               \
    }
GRAD2(add, normal_input(c, a), normal_input(c, b))
GRAD2(sub, normal_input(c, a), normal_input(c, b))
GRAD2(mul, normal_input(c, a), normal_input(c, b))
GRAD2(div, normal_input(c, a), kinkless_input(c, b))
GRAD2(maximum, distinct_input(c, a, 0), distinct_input(c, b, 0.05))
GRAD2(minimum, distinct_input(c, a, 0), distinct_input(c, b, 0.05))

/* Of relu and of leaky_relu. */
static void case_relu_grad(OpCase *c)
{
    AttrList attrs = {0};
    Type a, b;
    op_pair(c, op_shape(c, 0, 4), &a, &b);
    if (op_coin(c))
        attrs_float(&attrs, ATTR_alpha, op_uniform(c, -1, 1));
    normal_input(c, a);
    kinkless_input(c, b);
    op_done(c, OP_relu_grad, &attrs);
}

/* A tensor or a constant as exponent; constants also for bases of either sign. */
static void case_pow(OpCase *c)
{
    static const double powers[] = {0, 1, 2, 3, -1, -2};
    Type a, b;
    op_pair(c, op_shape(c, 0, 4), &a, &b);
    if (op_coin(c)) {
        op_floats(c, a, 0.4, 2.5);
        normal_input(c, b);
        op_done(c, OP_pow, NULL);
        return;
    }
    AttrList attrs = {0};
    attrs_float(&attrs, ATTR_value, powers[op_int(c, 0, 5)]);
    ValueId power =
        graph_add_source(c->g, OP_const, type_scalar(DTYPE_F32), &attrs, "%power", case_nowhere);
    op_on(c, OP_pow, (const ValueId[]){kinkless_input(c, a), power}, 2, NULL);
}

static void case_causal_mask(OpCase *c)
{
    AttrList attrs = {0};
    attrs_float(&attrs, ATTR_value, -3);
    normal_input(c, op_shape(c, 2, 4));
    op_done(c, OP_causal_mask, &attrs);
}

/* Some of the axes, all when absent; distinct values, so that reduce_max has no ties. */
static void reduction(OpCase *c, OpKind op)
{
    AttrList attrs = {0};
    Type t = op_reduced(c, 4, &attrs);
    distinct_input(c, t, 0.02);
    op_done(c, op, &attrs);
}
static void case_sum(OpCase *c)
{
    reduction(c, OP_sum);
}
static void case_mean(OpCase *c)
{
    reduction(c, OP_mean);
}
static void case_reduce_max(OpCase *c)
{
    reduction(c, OP_reduce_max);
}

static void case_matmul(OpCase *c)
{
    Type a, b;
    AttrList attrs = {0};
    bool ta = op_coin(c), tb = op_coin(c);
    int64_t m = op_int(c, 1, 4), k = op_int(c, 1, 4), n = op_int(c, 1, 4);
    do {
        op_pair(c, op_shape(c, 0, 4), &a, &b);
    } while (a.rank > 3 || b.rank > 3);
    a.dim[a.rank++] = ta ? k : m;
    a.dim[a.rank++] = ta ? m : k;
    b.dim[b.rank++] = tb ? n : k;
    b.dim[b.rank++] = tb ? k : n;
    if (ta)
        attrs_int(&attrs, ATTR_ta, 1);
    if (tb)
        attrs_int(&attrs, ATTR_tb, 1);
    normal_input(c, a);
    normal_input(c, b);
    op_done(c, OP_matmul, &attrs);
}

static void case_conv2d(OpCase *c)
{
    AttrList attrs = {0};
    int64_t stride[2], padding[2], dilation[2], groups = op_int(c, 1, 3);
    int64_t in = op_int(c, 1, 2), out = groups * op_int(c, 1, 2);
    int64_t r = op_int(c, 1, 3), s = op_int(c, 1, 3);
    bool nhwc = op_coin(c);
    op_two(c, &attrs, ATTR_stride, 1, 3, stride);
    op_two(c, &attrs, ATTR_padding, 0, 2, padding);
    op_two(c, &attrs, ATTR_dilation, 1, 2, dilation);
    attrs_int(&attrs, ATTR_groups, groups);
    if (nhwc)
        attrs_int(&attrs, ATTR_nhwc, 1);
    normal_input(c, op_image(nhwc, op_int(c, 1, 2), in * groups, op_int(c, 1, 6), op_int(c, 1, 6)));
    normal_input(c, nhwc ? DIMS(r, s, in, out) : DIMS(out, in, r, s));
    if (op_coin(c))
        normal_input(c, DIMS(out));
    op_done(c, OP_conv2d, &attrs);
}

static void case_deconv2d(OpCase *c)
{
    AttrList attrs = {0};
    int64_t stride[2], padding[2], dilation[2], extra[2], groups = op_int(c, 1, 3);
    int64_t in = groups * op_int(c, 1, 2), out = op_int(c, 1, 2);
    int64_t r = op_int(c, 1, 3), s = op_int(c, 1, 3);
    bool nhwc = op_coin(c);
    op_two(c, &attrs, ATTR_stride, 1, 3, stride);
    op_two(c, &attrs, ATTR_padding, 0, 2, padding);
    op_two(c, &attrs, ATTR_dilation, 1, 3, dilation);
    op_two(c, &attrs, ATTR_output_padding, 0, 2, extra);
    attrs_int(&attrs, ATTR_groups, groups);
    if (nhwc)
        attrs_int(&attrs, ATTR_nhwc, 1);
    normal_input(c, op_image(nhwc, op_int(c, 1, 2), in, op_int(c, 1, 5), op_int(c, 1, 5)));
    normal_input(c, nhwc ? DIMS(r, s, out, in) : DIMS(in, out, r, s));
    if (op_coin(c))
        normal_input(c, DIMS(out * groups));
    op_done(c, OP_deconv2d, &attrs);
}

static void pooling(OpCase *c, OpKind op)
{
    AttrList attrs = {0};
    int64_t kernel[2], stride[2], padding[2];
    bool nhwc = op_coin(c);
    op_two(c, &attrs, ATTR_kernel, 1, 3, kernel);
    if (op_coin(c))
        op_two(c, &attrs, ATTR_stride, 1, 3, stride);
    for (int i = 0; i < 2; i++)
        padding[i] = op_int(c, 0, kernel[i] / 2);
    attrs_ints(&attrs, ATTR_padding, padding, 2);
    if (op_coin(c))
        attrs_int(&attrs, ATTR_ceil, 1);
    if (op == OP_avgpool && op_coin(c))
        attrs_int(&attrs, ATTR_count_pad, 1);
    if (nhwc)
        attrs_int(&attrs, ATTR_nhwc, 1);
    distinct_input(
        c, op_image(nhwc, op_int(c, 1, 2), op_int(c, 1, 3), op_int(c, 1, 6), op_int(c, 1, 6)),
        0.03);
    op_done(c, op, &attrs);
}
static void case_maxpool(OpCase *c)
{
    pooling(c, OP_maxpool);
}
static void case_avgpool(OpCase *c)
{
    pooling(c, OP_avgpool);
}

/* Any size to any size. */
static void resampling(OpCase *c, OpKind op)
{
    AttrList attrs = {0};
    int64_t size[2];
    bool nhwc = op_coin(c);
    op_two(c, &attrs, ATTR_hw, 1, 7, size);
    int64_t kind = op == OP_resize ? op_int(c, 0, 2) : 2;
    if (kind < 2)
        attrs_int(&attrs, kind ? ATTR_nearest : ATTR_align_corners, 1);
    if (nhwc)
        attrs_int(&attrs, ATTR_nhwc, 1);
    normal_input(
        c, op_image(nhwc, op_int(c, 1, 2), op_int(c, 1, 3), op_int(c, 1, 7), op_int(c, 1, 7)));
    op_done(c, op, &attrs);
}
static void case_adaptive_avgpool(OpCase *c)
{
    resampling(c, OP_adaptive_avgpool);
}
static void case_resize(OpCase *c)
{
    resampling(c, OP_resize);
}

static void case_bn_stats(OpCase *c)
{
    AttrList attrs = {0};
    int64_t channels;
    ValueId x = normal_input(c, op_channelled(c, &attrs, &channels));
    ValueId mean = graph_add(c->g, OP_bn_stats, &x, 1, &attrs, NULL, case_nowhere);
    int which = (int)op_int(c, 0, 2);
    if (which < 2)
        c->out = value_node(c->g, mean)->out[which];
    else
        c->out = graph_add(c->g, OP_mul, value_node(c->g, mean)->out, 2, NULL, NULL, case_nowhere);
}

/* Statistics of x itself (training), of another tensor, or given (inference). */
static void case_bn_apply(OpCase *c)
{
    AttrList attrs = {0};
    int64_t channels;
    Type t = op_channelled(c, &attrs, &channels);
    AttrList with_eps = attrs;
    attrs_float(&with_eps, ATTR_eps, 1e-3);
    ValueId in[5] = {normal_input(c, t)};
    int kind = (int)op_int(c, 0, 2);
    if (kind < 2) {
        ValueId of = kind == 0 ? in[0] : normal_input(c, t);
        ValueId mean = graph_add(c->g, OP_bn_stats, &of, 1, &attrs, NULL, case_nowhere);
        in[1] = mean;
        in[2] = value_node(c->g, mean)->out[1];
    } else {
        in[1] = normal_input(c, DIMS(channels));
        in[2] = op_floats(c, DIMS(channels), 0.3, 2);
    }
    in[3] = normal_input(c, DIMS(channels));
    in[4] = normal_input(c, DIMS(channels));
    op_on(c, OP_bn_apply, in, 5, &with_eps);
}

static void case_layernorm(OpCase *c)
{
    AttrList attrs = {0};
    Type t = op_shape(c, 1, 4);
    t.dim[t.rank - 1] += 2;
    if (op_coin(c))
        attrs_float(&attrs, ATTR_eps, 1e-2);
    normal_input(c, t);
    int extra = (int)op_int(c, 0, 2);
    for (int i = 0; i < extra; i++)
        normal_input(c, DIMS(t.dim[t.rank - 1]));
    if (op_coin(c))
        attrs_int(&attrs, ATTR_rms, 1);
    op_done(c, OP_layernorm, &attrs);
}

/* The axis of the classes anywhere, some labels ignored, with or without smoothing. */
static void case_cross_entropy(OpCase *c)
{
    AttrList attrs = {0};
    Type t = op_shape(c, 1, 4), labels = {.rank = 0};
    int64_t axis = op_coin(c) ? t.rank - 1 : op_int(c, 0, t.rank - 1);
    t.dim[axis] += 1;
    for (int i = 0; i < t.rank; i++)
        if (i != axis)
            labels.dim[labels.rank++] = t.dim[i];
    if (axis != t.rank - 1)
        attrs_int(&attrs, ATTR_axis, axis);
    bool ignore = op_coin(c);
    if (ignore)
        attrs_int(&attrs, ATTR_ignore_index, -1);
    if (op_coin(c))
        attrs_float(&attrs, ATTR_smoothing, 0.1);
    normal_input(c, t);
    op_integers(c, labels, DTYPE_I32, ignore ? -1 : 0, t.dim[axis] - 1);
    static const char *const reductions[] = {"mean", "sum", "none"};
    attrs_string(&attrs, ATTR_reduction, reductions[op_int(c, 0, 2)]);
    ValueId in[3] = {c->in[0], c->in[1]};
    int n = 2;
    if (op_coin(c)) { /* constants: no gradient flows into them */
        double values[8] = {0.5, 2, 1, 0.25, 3};
        AttrList list = {0};
        attrs_floats(&list, ATTR_values, values, (int)t.dim[axis]);
        in[2] = graph_add(c->g, OP_literal, NULL, 0, &list, NULL, case_nowhere);
        n = 3;
    }
    op_on(c, OP_cross_entropy, in, n, &attrs);
}

static void case_embedding(OpCase *c)
{
    int64_t count = op_int(c, 1, 6);
    DType dtype = op_coin(c) ? DTYPE_I32 : DTYPE_U8;
    op_integers(c, op_shape(c, 0, 3), dtype, 0, count - 1);
    normal_input(c, DIMS(count, op_int(c, 1, 4)));
    op_done(c, OP_embedding, NULL);
}

/* Splits or joins dims at random. */
static void case_reshape(OpCase *c)
{
    AttrList attrs = {0};
    Type t = op_shape(c, 0, 4), to = {.rank = 0};
    int64_t left = type_elements(&t);
    while (to.rank < 5 && (left > 1 || op_coin(c))) {
        int64_t part = op_int(c, 1, left);
        while (left % part)
            part--;
        to.dim[to.rank++] = part;
        left /= part;
    }
    to.dim[to.rank++] = left;
    attrs_ints(&attrs, ATTR_shape, to.dim, to.rank);
    normal_input(c, t);
    op_done(c, OP_reshape, &attrs);
}

static void case_slice(OpCase *c)
{
    AttrList attrs = {0};
    Type t = op_shape(c, 1, 5);
    int64_t start[TYPE_MAX_RANK], limit[TYPE_MAX_RANK], step[TYPE_MAX_RANK];
    for (int i = 0; i < t.rank; i++) {
        t.dim[i] += op_int(c, 0, 4);
        start[i] = op_int(c, 0, op_coin(c) ? 0 : t.dim[i] - 1);
        limit[i] = op_coin(c) ? t.dim[i] : op_int(c, start[i] + 1, t.dim[i]);
        step[i] = op_int(c, 1, 3);
    }
    attrs_ints(&attrs, ATTR_start, start, t.rank);
    attrs_ints(&attrs, ATTR_limit, limit, t.rank);
    if (op_coin(c))
        attrs_ints(&attrs, ATTR_step, step, t.rank);
    normal_input(c, t);
    op_done(c, OP_slice, &attrs);
}

/* One to four operands, the first of them perhaps twice. */
static void case_concat(OpCase *c)
{
    AttrList attrs = {0};
    Type t = op_shape(c, 1, 4);
    int64_t axis = op_int(c, 0, t.rank - 1), n = op_int(c, 1, 4);
    attrs_int(&attrs, ATTR_axis, axis);
    ValueId in[5];
    for (int i = 0; i < n; i++) {
        t.dim[axis] = op_int(c, 1, 3);
        in[i] = normal_input(c, t);
    }
    if (op_coin(c))
        in[n++] = in[0];
    op_on(c, OP_concat, in, (int)n, &attrs);
}

/* By OpKind, NULL where there is none. */
// clang-format off
OpCaseMake *const grad_case_table[OP_COUNT] = {
#define CASE(name) [OP_##name] = case_##name
#define SAME(name) [OP_##name] = op_##name
    CASE(neg), CASE(abs), CASE(exp), CASE(log), CASE(sqrt), CASE(rsqrt), CASE(sin), CASE(cos), CASE(tanh), CASE(sigmoid),
    CASE(relu), SAME(gelu), CASE(silu), CASE(erf), CASE(mish), CASE(hardswish), CASE(leaky_relu), CASE(elu),
    CASE(softplus), CASE(clamp), CASE(cast), CASE(add), CASE(sub), CASE(mul), CASE(div),
    CASE(pow), CASE(maximum), CASE(minimum), SAME(select), CASE(relu_grad), SAME(dropout),
    CASE(causal_mask), CASE(sum), CASE(mean), CASE(reduce_max), CASE(matmul), SAME(linear),
    CASE(conv2d), CASE(maxpool), CASE(avgpool), CASE(adaptive_avgpool), CASE(resize), CASE(bn_stats), CASE(bn_apply), CASE(layernorm),
    SAME(softmax), SAME(log_softmax), CASE(cross_entropy), CASE(embedding), CASE(reshape),
    SAME(gather), SAME(scatter_add), SAME(cumsum), SAME(cumprod), SAME(prod),
    SAME(transpose), SAME(broadcast), CASE(slice), CASE(concat), SAME(pad),
    CASE(deconv2d), SAME(lrn), SAME(loop), [OP_attention] = op_attention_plain,
#undef CASE
#undef SAME
};
// clang-format on
