/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Cases at the edges of the number range: huge, infinite, NaN and constant data, labels that are
 * all ignored. */
#include "op_cases.h"

#include "ir/workspace.h"

#include <math.h>
#include <string.h>

/* Every line along the last axis gets one pattern: all near +-1e30, equal, or with some -inf, but
 * never only -inf. */
static void extreme_lines(OpCase *c, Type t)
{
    double *data;
    int64_t length = t.dim[t.rank - 1], lines = type_elements(&t) / length;
    op_source(c, t, &data);
    for (int64_t i = 0; i < lines; i++) {
        int64_t pattern = op_int(c, 0, 3), kept = op_int(c, 0, length - 1);
        for (int64_t k = 0; k < length; k++) {
            double x = op_uniform(c, -5, 5);
            if (pattern == 0)
                x = op_coin(c) ? 1e30 : -1e30;
            if (pattern == 1)
                x = 1e30;
            if (pattern == 2 && k != kept && op_coin(c))
                x = -(double)INFINITY;
            data[i * length + k] = (double)(float)x;
        }
    }
}

static Type extreme_shape(OpCase *c)
{
    return DIMS(op_int(c, 1, 70), op_int(c, 1, 80));
}

static void extreme_softmax(OpCase *c)
{
    extreme_lines(c, extreme_shape(c));
    op_done(c, OP_softmax, NULL);
}

static void extreme_log_softmax(OpCase *c)
{
    extreme_lines(c, extreme_shape(c));
    op_done(c, OP_log_softmax, NULL);
}

/* A line of -inf only is 0/0, as in PyTorch. */
static void extreme_masked(OpCase *c)
{
    op_floats(c, extreme_shape(c), -(double)INFINITY, -(double)INFINITY);
    for (int64_t i = 0; i < type_elements(value_type(c->g, c->in[0])); i++)
        c->data[0][i] = -(double)INFINITY;
    op_done(c, OP_softmax, NULL);
}

static void extreme_loss(OpCase *c, OpKind op, bool across)
{
    AttrList attrs = {0};
    Type t = extreme_shape(c), labels = DIMS(t.dim[across]);
    if (across)
        attrs_int(&attrs, ATTR_axis, 0);
    /* The gradient's reference subtracts the logarithm of the sum, which 1e30 would swallow. */
    double size = op == OP_cross_entropy_grad ? 1e6 : (double)1e30f;
    op_floats(c, t, -1, 1);
    for (int64_t i = 0; i < type_elements(&t); i++)
        c->data[0][i] = op_coin(c) ? size : -size;
    op_integers(c, labels, DTYPE_I32, 0, t.dim[!across] - 1);
    if (op == OP_cross_entropy_grad)
        op_scalar(c, 0.5, 2);
    op_done(c, op, &attrs);
}
static void extreme_cross_entropy(OpCase *c)
{
    extreme_loss(c, OP_cross_entropy, op_coin(c));
}
static void extreme_cross_entropy_grad(OpCase *c)
{
    extreme_loss(c, OP_cross_entropy_grad, op_coin(c));
}

static void extreme_ignored(OpCase *c, OpKind op)
{
    AttrList attrs = {0};
    Type t = extreme_shape(c);
    bool across = op_coin(c);
    if (across)
        attrs_int(&attrs, ATTR_axis, 0);
    op_normal(c, t);
    op_integers(c, DIMS(t.dim[across]), DTYPE_I32, -100, -100);
    if (op == OP_cross_entropy_grad)
        op_scalar(c, 0.5, 2);
    op_done(c, op, &attrs);
}
static void extreme_ignored_loss(OpCase *c)
{
    extreme_ignored(c, OP_cross_entropy);
}
static void extreme_ignored_grad(OpCase *c)
{
    extreme_ignored(c, OP_cross_entropy_grad);
}
static void extreme_ignored_accuracy(OpCase *c)
{
    extreme_ignored(c, OP_accuracy);
}

/* Squares that still fit, and data without variance. */
static void extreme_layernorm(OpCase *c)
{
    bool equal = op_coin(c);
    op_floats(c, extreme_shape(c), equal ? 0 : -1e15, equal ? 0 : 1e15);
    op_done(c, OP_layernorm, NULL);
}

/* As many channels as there may be, as neighbours and apart. */
static void extreme_lrn(OpCase *c, OpKind op)
{
    AttrList attrs = {0};
    int64_t inner = op_int(c, 0, 1) ? 1 : op_int(c, 2, 19);
    attrs_int(&attrs, ATTR_window, op_int(c, 90, 130));
    attrs_float(&attrs, ATTR_alpha, 1e-3);
    for (int i = 0; i < (op == OP_lrn ? 1 : 2); i++)
        op_normal(c, DIMS(1, LRN_CHANNELS_MOST - op_int(c, 0, 1), inner));
    op_done(c, op, &attrs);
}
static void extreme_lrn_forward(OpCase *c)
{
    extreme_lrn(c, OP_lrn);
}
static void extreme_lrn_grad(OpCase *c)
{
    extreme_lrn(c, OP_lrn_grad);
}

static void extreme_bn_stats(OpCase *c)
{
    int64_t kind = op_int(c, 0, 2);
    double middle = kind == 0 ? 1e4 : 0, spread = kind == 1 ? 1e15 : kind == 2 ? 0 : 1;
    op_floats(c, DIMS(op_int(c, 2, 300), op_int(c, 1, 70)), middle - spread, middle + spread);
    op_done(c, OP_bn_stats, NULL);
}

/* Variances past f32 are infinite, not NaN. */
static void extreme_bn_overflow(OpCase *c)
{
    op_floats(c, DIMS(op_int(c, 2, 100), op_int(c, 1, 70)), 1e25, 1e30);
    op_done(c, OP_bn_stats, NULL);
}

/* Some NaN, infinities and zeros. */
static void extreme_values(OpCase *c, Type t)
{
    static const double values[] = {
        (double)NAN, (double)INFINITY, -(double)INFINITY, 1e30, -1e30, 0, -0.0};
    op_normal(c, t);
    double *data = c->data[c->n_in - 1];
    for (int64_t i = 0; i < type_elements(&t); i++)
        if (op_int(c, 0, 15) == 0)
            data[i] = (double)(float)values[op_int(c, 0, 6)];
}

static void extreme_reduce_max(OpCase *c)
{
    AttrList attrs = {0};
    extreme_values(c, extreme_shape(c));
    attrs_ints(&attrs, ATTR_axes, (const int64_t[]){op_int(c, 0, 1)}, 1);
    op_done(c, OP_reduce_max, &attrs);
}

static void extreme_scan(OpCase *c, OpKind op)
{
    AttrList attrs = {0};
    attrs_int(&attrs, ATTR_axis, op_int(c, 0, 1));
    extreme_values(c, extreme_shape(c));
    op_done(c, op, &attrs);
}
static void extreme_cumsum(OpCase *c)
{
    extreme_scan(c, OP_cumsum);
}
static void extreme_prod(OpCase *c)
{
    extreme_scan(c, OP_prod);
}

/* Two zeros in a line, one of them, which may be negative. */
static void extreme_prod_grad(OpCase *c)
{
    static const double values[] = {0, 0, 0, 5, -0.0, 2};
    AttrList attrs = {0};
    attrs_int(&attrs, ATTR_axis, 1);
    op_normal(c, DIMS(3, 1));
    op_floats(c, DIMS(3, 2), 0, 0);
    for (int i = 0; i < 6; i++)
        c->data[1][i] = values[i];
    op_done(c, OP_prod_grad, &attrs);
}

static void extreme_argsort(OpCase *c)
{
    AttrList attrs = {0};
    if (op_coin(c))
        attrs_int(&attrs, ATTR_descending, 1);
    extreme_values(c, extreme_shape(c));
    for (int64_t i = 0; i < type_elements(value_type(c->g, c->in[0])); i++)
        if (isnan(c->data[0][i]) && op_coin(c))
            c->data[0][i] = copysign(c->data[0][i], -1); /* as 0/0 makes it */
    op_done(c, OP_argsort, &attrs);
}

static void extreme_argmax(OpCase *c)
{
    AttrList attrs = {0};
    extreme_values(c, extreme_shape(c));
    attrs_int(&attrs, ATTR_axis, op_int(c, 0, 1));
    op_done(c, OP_argmax, &attrs);
}

static void extreme_pooling(OpCase *c, OpKind op)
{
    AttrList attrs = {0};
    bool nhwc = op_coin(c);
    attrs_ints(&attrs, ATTR_kernel, (const int64_t[]){3, 3}, 2);
    attrs_ints(&attrs, ATTR_stride, (const int64_t[]){2, 1}, 2);
    attrs_ints(&attrs, ATTR_padding, (const int64_t[]){1, 1}, 2);
    if (nhwc)
        attrs_int(&attrs, ATTR_nhwc, 1);
    extreme_values(c, op_image(nhwc, 2, 18, 7, 6));
    op_done(c, op, &attrs);
}
static void extreme_maxpool(OpCase *c)
{
    extreme_pooling(c, OP_maxpool);
}
static void extreme_maxpool_index(OpCase *c)
{
    extreme_pooling(c, OP_maxpool_index);
}

#define EXTREME_POINT(name)                                                                        \
    static void extreme_##name(OpCase *c)                                                          \
    {                                                                                              \
        extreme_values(c, extreme_shape(c));                                                       \
        op_done(c, OP_##name, NULL);                                                               \
    }
EXTREME_POINT(relu)
EXTREME_POINT(relu_mask)
EXTREME_POINT(exp)
EXTREME_POINT(log)
EXTREME_POINT(rsqrt)
EXTREME_POINT(sigmoid)
EXTREME_POINT(tanh)
EXTREME_POINT(sign)
EXTREME_POINT(erf)
EXTREME_POINT(mish)
EXTREME_POINT(hardswish)

#define EXTREME_NUMBER(name, key, number)                                                          \
    static void extreme_##name(OpCase *c)                                                          \
    {                                                                                              \
        AttrList attrs = {0};                                                                      \
        attrs_float(&attrs, key, number);                                                          \
        extreme_values(c, extreme_shape(c));                                                       \
        op_done(c, OP_##name, &attrs);                                                             \
    }
EXTREME_NUMBER(leaky_relu, ATTR_alpha, 0.01)
EXTREME_NUMBER(elu, ATTR_alpha, 1.5)
EXTREME_NUMBER(softplus, ATTR_beta, 2)
EXTREME_NUMBER(clamp, ATTR_max, 1)

#define EXTREME_PAIR(name)                                                                         \
    static void extreme_##name(OpCase *c)                                                          \
    {                                                                                              \
        Type t = extreme_shape(c);                                                                 \
        extreme_values(c, t);                                                                      \
        extreme_values(c, t);                                                                      \
        op_done(c, OP_##name, NULL);                                                               \
    }
EXTREME_PAIR(maximum)
EXTREME_PAIR(minimum)
EXTREME_PAIR(le)
EXTREME_PAIR(ne)
EXTREME_PAIR(hardswish_grad)

/* Where y is 0, too; nothing huge, beside which a wrong slope would be allowed. */
static void extreme_slope(OpCase *c, OpKind op)
{
    static const double values[] = {0, -0.0, (double)NAN};
    AttrList attrs = {0};
    Type t = extreme_shape(c);
    attrs_float(&attrs, ATTR_alpha, 0.25);
    op_normal(c, t);
    op_normal(c, t);
    for (int64_t i = 0; i < type_elements(&t); i++)
        if (op_int(c, 0, 3) == 0)
            c->data[1][i] = values[op_int(c, 0, 2)];
    op_done(c, op, &attrs);
}
static void extreme_relu_grad(OpCase *c)
{
    extreme_slope(c, OP_relu_grad);
}
static void extreme_elu_grad(OpCase *c)
{
    extreme_slope(c, OP_elu_grad);
}

/* NaN, infinities, and values on the bounds. */
static void extreme_clamp_slope(OpCase *c, bool open)
{
    AttrList attrs = {0};
    Type t = extreme_shape(c);
    attrs_float(&attrs, ATTR_min, 0);
    attrs_float(&attrs, ATTR_max, 1e30f);
    if (open)
        attrs_int(&attrs, ATTR_open, 1);
    op_normal(c, t);
    extreme_values(c, t);
    op_done(c, OP_clamp_grad, &attrs);
}
static void extreme_clamp_grad(OpCase *c)
{
    extreme_clamp_slope(c, false);
}
static void extreme_relu6_grad(OpCase *c)
{
    extreme_clamp_slope(c, true);
}

static void extreme_clip(OpCase *c)
{
    static const double norms[] = {0, (double)NAN, (double)INFINITY, 1e30};
    op_scalar(c, 0, 1);
    c->data[0][0] = (double)(float)norms[op_int(c, 0, 3)];
    op_done(c, OP_clip_scale, NULL);
}

/* To bf16: a device's NaN, which rounding up would make -0, another, ties, what becomes infinite,
 * and numbers that are not normal. */
static void extreme_rounding(OpCase *c)
{
    static const uint32_t words[] = {0x7fffffff, 0xffffffff, 0x7f800001, 0x7f7fffff, 0xff7f8000,
                                     0x3f808000, 0x3f818000, 0xbf808001, 0x00008000, 0x00018000,
                                     0x80007fff, 0x7f800000, 0x80000000, 0x007fffff};
    enum { WORDS = sizeof words / sizeof *words };
    AttrList attrs = {0};
    attrs_string(&attrs, ATTR_dtype, dtype_name(DTYPE_BF16));
    double *data;
    op_source(c, DIMS(WORDS), &data);
    for (int i = 0; i < WORDS; i++) {
        float x;
        memcpy(&x, &words[i], sizeof x);
        data[i] = (double)x;
    }
    op_done(c, OP_cast, &attrs);
}

const OpRow op_extremes[] = {
    {OP_cast, extreme_rounding},
    {OP_softmax, extreme_softmax},
    {OP_softmax, extreme_masked},
    {OP_log_softmax, extreme_log_softmax},
    {OP_cross_entropy, extreme_cross_entropy},
    {OP_cross_entropy_grad, extreme_cross_entropy_grad},
    {OP_cross_entropy, extreme_ignored_loss},
    {OP_cross_entropy_grad, extreme_ignored_grad},
    {OP_accuracy, extreme_ignored_accuracy},
    {OP_layernorm, extreme_layernorm},
    {OP_lrn, extreme_lrn_forward},
    {OP_lrn_grad, extreme_lrn_grad},
    {OP_bn_stats, extreme_bn_stats},
    {OP_bn_stats, extreme_bn_overflow},
    {OP_reduce_max, extreme_reduce_max},
    {OP_argmax, extreme_argmax},
    {OP_argsort, extreme_argsort},
    {OP_argsort, op_long_argsort},
    {OP_cumsum, extreme_cumsum},
    {OP_prod, extreme_prod},
    {OP_prod_grad, extreme_prod_grad},
    {OP_maxpool, extreme_maxpool},
    {OP_maxpool_index, extreme_maxpool_index},
    {OP_relu, extreme_relu},
    {OP_relu_mask, extreme_relu_mask},
    {OP_exp, extreme_exp},
    {OP_log, extreme_log},
    {OP_rsqrt, extreme_rsqrt},
    {OP_sigmoid, extreme_sigmoid},
    {OP_tanh, extreme_tanh},
    {OP_sign, extreme_sign},
    {OP_erf, extreme_erf},
    {OP_mish, extreme_mish},
    {OP_hardswish, extreme_hardswish},
    {OP_leaky_relu, extreme_leaky_relu},
    {OP_elu, extreme_elu},
    {OP_softplus, extreme_softplus},
    {OP_clamp, extreme_clamp},
    {OP_hardswish_grad, extreme_hardswish_grad},
    {OP_clamp_grad, extreme_clamp_grad},
    {OP_clamp_grad, extreme_relu6_grad},
    {OP_relu_grad, extreme_relu_grad},
    {OP_elu_grad, extreme_elu_grad},
    {OP_maximum, extreme_maximum},
    {OP_minimum, extreme_minimum},
    {OP_le, extreme_le},
    {OP_ne, extreme_ne},
    {OP_clip_scale, extreme_clip},
};
const int op_extremes_n = sizeof op_extremes / sizeof *op_extremes;
