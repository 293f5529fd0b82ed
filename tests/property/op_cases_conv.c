/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Convolutions of the kinds that models have and that kernels treat apart: depthwise, grouped,
 * dilated, rectangular, stems of few channels, strides past the kernel.  See op_cases.h. */
#include "op_cases.h"
#include "tests/support/fused.h"

/* Fills v's sizes but for nhwc and the attributes. */
typedef void OpConvKind(OpCase *c, OpConv *v);

static int64_t op_pick(OpCase *c, const int64_t *from, int64_t n)
{
    return from[op_int(c, 0, n - 1)];
}
#define OP_PICK(c, ...)                                                                            \
    op_pick(c, (const int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static void op_conv_image(OpCase *c, OpConv *v, int64_t low, int64_t high)
{
    v->n = op_int(c, 1, 3);
    v->h = op_int(c, low, high);
    v->w = op_int(c, low, high);
    for (int i = 0; i < 2; i++)
        v->stride[i] = v->dilation[i] = 1;
}

static void kind_depthwise(OpCase *c, OpConv *v)
{
    op_conv_image(c, v, 4, 21);
    v->groups = v->out = OP_PICK(c, 5, 16, 17, 20, 36, 72);
    v->in = 1;
    v->r = op_int(c, 1, 7);
    v->s = op_int(c, 1, 7);
    for (int i = 0; i < 2; i++) {
        v->stride[i] = op_int(c, 1, 3);
        v->padding[i] = op_int(c, 0, 4);
        v->dilation[i] = op_int(c, 1, 2);
    }
}

/* As NASNet has them: padded to the same size, stride 1 or 2. */
static void kind_separable(OpCase *c, OpConv *v)
{
    op_conv_image(c, v, 8, 33);
    v->groups = v->out = OP_PICK(c, 36, 24, 40);
    v->in = 1;
    v->r = v->s = 3 + 2 * op_int(c, 0, 2);
    for (int i = 0; i < 2; i++) {
        v->stride[i] = op_int(c, 1, 2);
        v->padding[i] = v->r / 2;
    }
}

static void kind_grouped(OpCase *c, OpConv *v)
{
    op_conv_image(c, v, 4, 9);
    v->groups = OP_PICK(c, 2, 3, 5, 8, 32);
    v->in = OP_PICK(c, 1, 2, 4, 8, 20);
    v->out = OP_PICK(c, 1, 2, 4, 8, 17) * v->groups;
    v->r = op_int(c, 1, 3);
    v->s = op_int(c, 1, 3);
    for (int i = 0; i < 2; i++) {
        v->stride[i] = op_int(c, 1, 2);
        v->padding[i] = op_int(c, 0, 2);
    }
}

/* Groups of a few channels, as many out as in: ResNeXt. */
static void kind_narrow(OpCase *c, OpConv *v)
{
    op_conv_image(c, v, 4, 18);
    v->in = OP_PICK(c, 2, 4, 8);
    v->groups = 16 / v->in * op_int(c, 1, 3);
    v->out = v->in * v->groups;
    v->r = op_int(c, 1, 3);
    v->s = op_int(c, 1, 5);
    for (int i = 0; i < 2; i++) {
        v->stride[i] = op_int(c, 1, 2);
        v->padding[i] = op_int(c, 0, 2);
        v->dilation[i] = op_int(c, 1, 2);
    }
}

/* A small gradient of large images. */
static void kind_thin(OpCase *c, OpConv *v)
{
    op_conv_image(c, v, 28, 40);
    v->groups = op_int(c, 1, 2);
    v->in = op_int(c, 1, 3);
    v->out = OP_PICK(c, 3, 8, 17) * v->groups;
    v->r = op_int(c, 1, 3);
    v->s = op_int(c, 1, 2);
    v->stride[0] = op_int(c, 1, 2);
    v->padding[1] = op_int(c, 0, 2);
}

static void kind_dilated(OpCase *c, OpConv *v)
{
    op_conv_image(c, v, 9, 17);
    v->groups = 1;
    v->in = OP_PICK(c, 4, 16, 19, 48);
    v->out = OP_PICK(c, 3, 16, 33);
    v->r = v->s = 3;
    for (int i = 0; i < 2; i++) {
        v->stride[i] = op_int(c, 1, 3) == 1 ? 2 : 1;
        v->dilation[i] = op_int(c, 2, 4);
        v->padding[i] = op_int(c, 0, v->dilation[i] + 1);
    }
}

static void kind_rectangular(OpCase *c, OpConv *v)
{
    op_conv_image(c, v, 7, 17);
    v->groups = 1;
    v->in = OP_PICK(c, 4, 16, 36);
    v->out = OP_PICK(c, 12, 16, 36);
    bool flat = op_coin(c);
    int64_t length = OP_PICK(c, 3, 5, 7);
    v->r = flat ? 1 : length;
    v->s = flat ? length : 1;
    v->padding[flat] = length / 2;
    v->stride[op_int(c, 0, 1)] = op_int(c, 1, 2);
}

static void kind_stem(OpCase *c, OpConv *v)
{
    op_conv_image(c, v, 11, 40);
    v->groups = 1;
    v->in = op_int(c, 1, 4);
    v->out = OP_PICK(c, 8, 24, 32);
    v->r = v->s = OP_PICK(c, 3, 5, 7, 11);
    for (int i = 0; i < 2; i++) {
        v->stride[i] = op_int(c, 1, 4);
        v->padding[i] = op_int(c, 0, 3);
    }
}

static void kind_strided(OpCase *c, OpConv *v)
{
    op_conv_image(c, v, 3, 9);
    v->groups = 1;
    v->in = OP_PICK(c, 3, 16, 40);
    v->out = OP_PICK(c, 3, 16, 40);
    v->r = op_int(c, 1, 2);
    v->s = op_int(c, 1, 2);
    v->stride[0] = op_int(c, 1, 4);
    v->stride[1] = op_int(c, 1, 4);
}

/* So many channels that a sum has several chains. */
static void kind_deep(OpCase *c, OpConv *v)
{
    op_conv_image(c, v, 2, 5);
    v->groups = 1;
    v->in = OP_PICK(c, 90, 256, 261);
    v->out = OP_PICK(c, 90, 256, 261);
    v->r = op_int(c, 1, 3);
    v->s = op_int(c, 2, 3);
    for (int i = 0; i < 2; i++) {
        v->stride[i] = op_int(c, 1, 2);
        v->padding[i] = op_int(c, 0, 1);
    }
}

/* As many, and a stride over pixels that no place of the kernel reads. */
static void kind_deep_strided(OpCase *c, OpConv *v)
{
    kind_deep(c, v);
    v->out = OP_PICK(c, 256, 261);
    v->r = op_int(c, 1, 2);
    v->stride[0] = v->r + 1;
}

/* In Winograd's form. */
static void kind_winograd(OpCase *c, OpConv *v)
{
    op_conv_image(c, v, 2, 15);
    v->groups = 1;
    v->in = OP_PICK(c, 16, 19, 40, 72);
    v->out = OP_PICK(c, 16, 23, 48, 65);
    v->r = v->s = 3;
    for (int i = 0; i < 2; i++)
        v->padding[i] = op_int(c, 0, 2);
    attrs_int(&v->attrs, ATTR_winograd, OP_PICK(c, 2, 4));
}

/* A convolution of that kind, with its attributes but for hw, which point into *v. */
static void op_conv_draw(OpCase *c, OpConvKind *kind, OpConv *v)
{
    do {
        *v = (OpConv){.nhwc = true};
        kind(c, v);
    } while (!op_conv_fits(v));
    attrs_ints(&v->attrs, ATTR_stride, v->stride, 2);
    attrs_ints(&v->attrs, ATTR_padding, v->padding, 2);
    attrs_ints(&v->attrs, ATTR_dilation, v->dilation, 2);
    attrs_int(&v->attrs, ATTR_groups, v->groups);
    attrs_int(&v->attrs, ATTR_nhwc, 1);
}

static void op_conv_kind(OpCase *c, OpKind op, OpConvKind *kind)
{
    OpConv v;
    op_conv_draw(c, kind, &v);
    const int64_t image[] = {v.h, v.w}, window[] = {v.r, v.s};
    op_normal(c, op == OP_conv2d_dgrad ? op_conv_output(&v) : op_conv_input(&v));
    op_normal(c, op == OP_conv2d_wgrad ? op_conv_output(&v) : op_filter(&v));
    if (op == OP_conv2d && op_coin(c))
        op_normal(c, DIMS(v.out));
    if (op == OP_conv2d_dgrad)
        attrs_ints(&v.attrs, ATTR_hw, image, 2);
    if (op == OP_conv2d_wgrad)
        attrs_ints(&v.attrs, ATTR_hw, window, 2);
    op_done(c, op, &v.attrs);
}

#define OP_CONV_KIND(kind)                                                                         \
    static void op_conv2d_##kind(OpCase *c)                                                        \
    {                                                                                              \
        op_conv_kind(c, OP_conv2d, kind_##kind);                                                   \
    }                                                                                              \
    static void op_conv2d_dgrad_##kind(OpCase *c)                                                  \
    {                                                                                              \
        op_conv_kind(c, OP_conv2d_dgrad, kind_##kind);                                             \
    }                                                                                              \
    static void op_conv2d_wgrad_##kind(OpCase *c)                                                  \
    {                                                                                              \
        op_conv_kind(c, OP_conv2d_wgrad, kind_##kind);                                             \
    }
OP_CONV_KIND(depthwise)
OP_CONV_KIND(separable)
OP_CONV_KIND(grouped)
OP_CONV_KIND(narrow)
OP_CONV_KIND(thin)
OP_CONV_KIND(dilated)
OP_CONV_KIND(rectangular)
OP_CONV_KIND(stem)
OP_CONV_KIND(strided)
OP_CONV_KIND(deep)
OP_CONV_KIND(deep_strided)
OP_CONV_KIND(winograd)

/* tanh(conv2d(x, w, bias) * s + r), with s per column, or whole. */
static void op_conv_group(OpCase *c, OpConvKind *kind)
{
    Graph *body = graph_new(c->pool, "body");
    Loc none = {0};
    OpConv v;
    op_conv_draw(c, kind, &v);
    Type y = op_conv_output(&v), part = op_smaller(c, y);
    const Type types[] = {op_conv_input(&v), op_filter(&v), DIMS(v.out), part, y};
    ValueId in[5];
    c->bf16 &= ~4u; /* biases are f32 */
    for (int i = 0; i < 5; i++)
        in[i] = op_inner(c, body, op_normal(c, types[i]));
    ValueId h = graph_add(body, OP_conv2d, in, 3, &v.attrs, NULL, none);
    h = graph_add(body, OP_mul, (const ValueId[]){h, in[3]}, 2, NULL, NULL, none);
    h = graph_add(body, OP_add, (const ValueId[]){h, in[4]}, 2, NULL, NULL, none);
    h = graph_add(body, OP_tanh, &h, 1, NULL, NULL, none);
    graph_add_output(body, "y", h);
    c->node = graph_add_fused(c->g, body, c->in, c->n_in, "%out", none);
}

#define OP_CONV_GROUP(kind)                                                                        \
    static void op_conv_group_##kind(OpCase *c)                                                    \
    {                                                                                              \
        op_conv_group(c, kind_##kind);                                                             \
    }
OP_CONV_GROUP(depthwise)
OP_CONV_GROUP(grouped)
OP_CONV_GROUP(dilated)
OP_CONV_GROUP(stem)
OP_CONV_GROUP(winograd)
const OpRow op_conv_groups[] = {
    {OP_fused, op_conv_group_depthwise},
    {OP_fused, op_conv_group_grouped},
    {OP_fused, op_conv_group_dilated},
    {OP_fused, op_conv_group_stem},
};
const int op_conv_groups_n = sizeof op_conv_groups / sizeof *op_conv_groups;

/* clang-format off */
#define OP_CONV_ROW(kind)                                                                          \
    {OP_conv2d, op_conv2d_##kind},                                                                 \
    {OP_conv2d_dgrad, op_conv2d_dgrad_##kind},                                                     \
    {OP_conv2d_wgrad, op_conv2d_wgrad_##kind}
/* clang-format on */
const OpRow op_conv_cases[] = {
    OP_CONV_ROW(depthwise), OP_CONV_ROW(separable), OP_CONV_ROW(grouped),      OP_CONV_ROW(narrow),
    OP_CONV_ROW(thin),      OP_CONV_ROW(dilated),   OP_CONV_ROW(rectangular),  OP_CONV_ROW(stem),
    OP_CONV_ROW(strided),   OP_CONV_ROW(deep),      OP_CONV_ROW(deep_strided),
};
const int op_conv_cases_n = sizeof op_conv_cases / sizeof *op_conv_cases;
const OpRow op_winograd_cases[] = {
    OP_CONV_ROW(winograd),
    {OP_fused, op_conv_group_winograd},
};
const int op_winograd_cases_n = sizeof op_winograd_cases / sizeof *op_winograd_cases;
