/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shapes of convolution, pooling and resizing. */
#include "ir/shape_rules.h"
#include "ir/workspace.h"

#include <inttypes.h>
#include <string.h>

/* Convolution and pooling windows: [h, w] each. */
typedef struct Window {
    int64_t kernel[2], stride[2], padding[2], dilation[2];
    bool ceil;
} Window;

/* kernel is an attribute of pooling; the callers of convolutions know it from the weight. */
static bool window_attrs(const Node *node, Window *w, ShapeError *err)
{
    w->ceil = node_flag(node, ATTR_ceil);
    return want_ints(node, ATTR_stride, 2, 1, 1, w->stride, err) &&
           want_ints(node, ATTR_padding, 2, 0, 0, w->padding, err) &&
           want_ints(node, ATTR_dilation, 2, 1, 1, w->dilation, err);
}

/* Output length of a window sliding over `size` elements, or a failure.  ceil mode as PyTorch: a
 * window may hang over the right border by less than a stride, but one that would start in the
 * right padding is dropped.  Source: PyTorch's
 * pooling_output_shape_pad_lr. */
static bool window_length(const Node *node, const Window *w, int i, int64_t size, int64_t *length,
                          ShapeError *err)
{
    int64_t padded, extent, span;
    if (!size_mul(w->padding[i], 2, &padded) || !size_add(size, padded, &padded) ||
        !size_mul(w->kernel[i] - 1, w->dilation[i], &extent) || !size_add(extent, 1, &extent) ||
        !size_add(padded, w->stride[i], &span))
        return shape_fail(err, "E108", 0, "%s: the window is too large", op_name(node->op));
    int64_t stride = w->stride[i];
    bool hangs_over = w->ceil && extent > padded && extent - padded < stride;
    if (extent > padded && !hangs_over) {
        shape_fail(err, "E106", 0,
                   "%s: a window of %" PRId64 " does not fit %s %" PRId64 " with padding %" PRId64,
                   op_name(node->op), extent, i ? "width" : "height", size, w->padding[i]);
        return shape_help(err, "a smaller window, more padding, or one layer of stride less");
    }
    int64_t room = padded - extent;
    *length = hangs_over ? 1 : room / stride + 1;
    if (w->ceil && room > 0 && room % stride && *length * stride < size + w->padding[i])
        ++*length;
    return true;
}

/* Axes of an image: NCHW, or NHWC with the flag. */
typedef struct ImageAxes {
    int channel, row;
} ImageAxes;

static ImageAxes image_axes(const Node *node)
{
    return node_flag(node, ATTR_nhwc) ? (ImageAxes){3, 1} : (ImageAxes){1, 2};
}

static Type image_type(const Node *node, DType dtype, int64_t n, int64_t c, const int64_t hw[2])
{
    ImageAxes ax = image_axes(node);
    Type t = {.dtype = dtype, .rank = 4};
    t.dim[0] = n;
    t.dim[ax.channel] = c;
    t.dim[ax.row] = hw[0];
    t.dim[ax.row + 1] = hw[1];
    return t;
}

static bool want_image(const Graph *g, const Node *node, int i, ShapeError *err)
{
    if (!want_float(g, node, i, err))
        return false;
    const Type *t = shape_in(g, node, i);
    if (t->rank == 4)
        return true;
    shape_fail(err, "E103", i, "%s needs images [N,C,H,W], got %s", op_name(node->op), SHOW(t));
    return t->rank == 3 ? shape_help(err, "add the missing dim with reshape") : false;
}

/* Weight [K,C/groups,R,S] (OIHW) or with nhwc [R,S,C/groups,K]. */
typedef struct Filter {
    int64_t k, c_group, groups;
    int64_t rs[2];
} Filter;

static bool filter_of(const Node *node, const Type *w, Filter *f, ShapeError *err)
{
    bool nhwc = node_flag(node, ATTR_nhwc);
    f->groups = node_int(node, ATTR_groups, 1);
    f->k = w->dim[nhwc ? 3 : 0];
    f->c_group = w->dim[nhwc ? 2 : 1];
    f->rs[0] = w->dim[nhwc ? 0 : 2];
    f->rs[1] = w->dim[nhwc ? 1 : 3];
    if (f->groups < 1 || f->k % f->groups)
        return shape_fail(
            err, "E105", -1, "%s: groups = %" PRId64 " does not divide %" PRId64 " %s channels",
            op_name(node->op), f->groups, f->k, node->op == OP_deconv2d ? "input" : "output");
    return true;
}

static bool conv_filter(const Graph *g, const Node *node, Filter *f, Window *win, ShapeError *err)
{
    if (!want_float(g, node, 1, err) || !want_rank(g, node, 1, 4, 4, err) ||
        !filter_of(node, shape_in(g, node, 1), f, err) || !window_attrs(node, win, err))
        return false;
    win->kernel[0] = f->rs[0];
    win->kernel[1] = f->rs[1];
    return true;
}

static bool conv_channels(const Node *node, const Type *x, const Filter *f, ShapeError *err)
{
    int64_t c = x->dim[image_axes(node).channel];
    /* By division: c_group * groups of hostile text could overflow. */
    if (c % f->groups == 0 && c / f->groups == f->c_group)
        return true;
    return shape_fail(err, "E101", 0,
                      "%s: %" PRId64 " channels here but the weight takes %" PRId64
                      " in each of %" PRId64 " group%s",
                      op_name(node->op), c, f->c_group, f->groups, f->groups == 1 ? "" : "s");
}

/* x, w, bias[K]? */
SHAPE_RULE(conv2d)
{
    Filter f;
    Window win;
    int64_t hw[2];
    if (!want_image(g, node, 0, err) || !conv_filter(g, node, &f, &win, err))
        return false;
    const Type *x = shape_in(g, node, 0);
    int row = image_axes(node).row;
    if (!conv_channels(node, x, &f, err) ||
        !window_length(node, &win, 0, x->dim[row], &hw[0], err) ||
        !window_length(node, &win, 1, x->dim[row + 1], &hw[1], err))
        return false;
    *out = image_type(node, x->dtype, x->dim[0], f.k, hw);
    return want_result(g, node, out, err) && want_bias_vector(g, node, f.k, err);
}

/* (dy, w) -> dx of height and width hw; dy must be what conv2d makes of such an x. */
SHAPE_RULE(conv2d_dgrad)
{
    Filter f;
    Window win;
    int64_t hw[2], expected[2], channels;
    if (!want_image(g, node, 0, err) || !conv_filter(g, node, &f, &win, err) ||
        !want_ints(node, ATTR_hw, 2, 1, -1, hw, err) ||
        !window_length(node, &win, 0, hw[0], &expected[0], err) ||
        !window_length(node, &win, 1, hw[1], &expected[1], err))
        return false;
    if (!size_mul(f.c_group, f.groups, &channels))
        return shape_fail(err, "E108", 1, "conv2d_dgrad: the result is too large");
    const Type *dy = shape_in(g, node, 0);
    Type want = image_type(node, dy->dtype, dy->dim[0], f.k, expected);
    *out = image_type(node, dy->dtype, dy->dim[0], channels, hw);
    return want_result(g, node, out, err) && want_type(g, node, 0, &want, err);
}

/* (x, dy) -> dw of height and width hw, f32 */
SHAPE_RULE(conv2d_wgrad)
{
    Window win;
    int64_t hw[2], expected[2], groups = node_int(node, ATTR_groups, 1);
    if (!want_image(g, node, 0, err) || !want_image(g, node, 1, err) ||
        !window_attrs(node, &win, err) || !want_ints(node, ATTR_hw, 2, 1, -1, hw, err))
        return false;
    const Type *x = shape_in(g, node, 0), *dy = shape_in(g, node, 1);
    ImageAxes ax = image_axes(node);
    int64_t c = x->dim[ax.channel], k = dy->dim[ax.channel];
    win.kernel[0] = hw[0];
    win.kernel[1] = hw[1];
    if (groups < 1 || c % groups || k % groups)
        return shape_fail(err, "E105", -1,
                          "conv2d_wgrad: groups = %" PRId64 " does not divide %" PRId64
                          " and %" PRId64 " channels",
                          groups, c, k);
    if (!window_length(node, &win, 0, x->dim[ax.row], &expected[0], err) ||
        !window_length(node, &win, 1, x->dim[ax.row + 1], &expected[1], err))
        return false;
    const int64_t oihw[4] = {k, c / groups, hw[0], hw[1]}, hwio[4] = {hw[0], hw[1], c / groups, k};
    *out = type_make(DTYPE_F32, 4, node_flag(node, ATTR_nhwc) ? hwio : oihw);
    Type want = image_type(node, dy->dtype, x->dim[0], k, expected);
    return want_type(g, node, 1, &want, err);
}

/* Max pooling's gradient numbers a window's elements with floats, an index with bytes. */
static int64_t most_elements(OpKind op)
{
    bool index = op == OP_maxpool_index || op == OP_maxpool_index_grad;
    bool max = op == OP_maxpool || op == OP_maxpool_grad;
    return index ? 256 : max ? 1 << 24 : INT64_MAX;
}

static bool countable_window(const Node *node, const Window *w, ShapeError *err)
{
    int64_t pixels, most = most_elements(node->op);
    if (most == INT64_MAX || (size_mul(w->kernel[0], w->kernel[1], &pixels) && pixels <= most))
        return true;
    return shape_fail(err, "E108", -1, "%s: a window of more than %" PRId64 " elements",
                      op_name(node->op), most);
}

/* Output length of a transposed convolution, (size-1)*stride - 2*padding + dilation*(kernel-1) +
 * output_padding + 1 as PyTorch's, or a failure. */
static bool deconv_length(const Window *w, int i, int64_t size, int64_t extra, int64_t *length,
                          ShapeError *err)
{
    int64_t padded, extent, sum;
    if (extra >= w->stride[i] && extra >= w->dilation[i])
        return shape_fail(err, "E105", -1,
                          "deconv2d: output padding %" PRId64
                          " must be less than the stride %" PRId64 " or the dilation %" PRId64,
                          extra, w->stride[i], w->dilation[i]);
    if (!size_mul(w->padding[i], 2, &padded) || !size_mul(size - 1, w->stride[i], &sum) ||
        !size_mul(w->kernel[i] - 1, w->dilation[i], &extent) || !size_add(sum, extent, &sum) ||
        !size_add(sum, extra + 1, &sum))
        return shape_fail(err, "E108", 0, "deconv2d: the window is too large");
    *length = sum - padded;
    if (*length >= 1)
        return true;
    shape_fail(err, "E106", 0, "deconv2d: padding %" PRId64 " leaves nothing of %" PRId64 " %s",
               w->padding[i], sum, i ? "columns" : "rows");
    return shape_help(err, "less padding, or a larger window");
}

/* x, w, bias[out]? */
SHAPE_RULE(deconv2d)
{
    Filter f;
    Window win;
    int64_t hw[2], extra[2], channels;
    if (!want_image(g, node, 0, err) || !conv_filter(g, node, &f, &win, err) ||
        !want_ints(node, ATTR_output_padding, 2, 0, 0, extra, err))
        return false;
    const Type *x = shape_in(g, node, 0);
    ImageAxes ax = image_axes(node);
    if (x->dim[ax.channel] != f.k)
        return shape_fail(err, "E101", 0,
                          "deconv2d: %" PRId64 " channels here but the weight takes %" PRId64,
                          x->dim[ax.channel], f.k);
    if (!size_mul(f.c_group, f.groups, &channels))
        return shape_fail(err, "E108", 1, "deconv2d: the result is too large");
    for (int i = 0; i < 2; i++)
        if (!deconv_length(&win, i, x->dim[ax.row + i], extra[i], &hw[i], err))
            return false;
    *out = image_type(node, x->dtype, x->dim[0], channels, hw);
    return want_result(g, node, out, err) && want_bias_vector(g, node, channels, err);
}

static bool pool_window(const Node *node, Window *w, ShapeError *err)
{
    if (!want_ints(node, ATTR_kernel, 2, 1, -1, w->kernel, err) || !window_attrs(node, w, err))
        return false;
    for (int i = 0; i < 2; i++) {
        w->stride[i] = node_ints_at(node, ATTR_stride, i, w->kernel[i]);
        if (w->dilation[i] != 1)
            return shape_fail(err, "E105", -1, "%s has no dilation", op_name(node->op));
        /* As PyTorch: more padding would make windows of nothing but padding. */
        if (w->padding[i] > w->kernel[i] / 2)
            return shape_fail(err, "E106", -1,
                              "%s: padding %" PRId64 " is more than half of the window %" PRId64,
                              op_name(node->op), w->padding[i], w->kernel[i]);
    }
    return countable_window(node, w, err);
}

/* What pooling makes of an image with these sizes. */
static bool pooled(const Node *node, DType dtype, int64_t n, int64_t c, const int64_t hw[2],
                   Type *out, ShapeError *err)
{
    Window w;
    int64_t result[2];
    if (!pool_window(node, &w, err) || !window_length(node, &w, 0, hw[0], &result[0], err) ||
        !window_length(node, &w, 1, hw[1], &result[1], err))
        return false;
    *out = image_type(node, dtype, n, c, result);
    return true;
}

/* kernel, stride (default: kernel), padding, ceil */
SHAPE_RULE(pool)
{
    if (!want_image(g, node, 0, err))
        return false;
    const Type *x = shape_in(g, node, 0);
    ImageAxes ax = image_axes(node);
    return pooled(node, x->dtype, x->dim[0], x->dim[ax.channel], &x->dim[ax.row], out, err);
}

/* (dy, x) -> dx */
SHAPE_RULE(maxpool_grad)
{
    Type want;
    if (!want_image(g, node, 0, err) || !want_image(g, node, 1, err))
        return false;
    const Type *x = shape_in(g, node, 1);
    ImageAxes ax = image_axes(node);
    *out = *x;
    return pooled(node, x->dtype, x->dim[0], x->dim[ax.channel], &x->dim[ax.row], &want, err) &&
           want_type(g, node, 0, &want, err);
}

SHAPE_RULE(maxpool_index)
{
    if (!shape_pool(g, node, out, n_out, err))
        return false;
    out->dtype = DTYPE_U8;
    return true;
}

/* dy -> dx of height and width hw */
static bool pool_gradient(const Graph *g, const Node *node, Type *out, ShapeError *err)
{
    int64_t hw[2];
    Type want;
    if (!want_image(g, node, 0, err) || !want_ints(node, ATTR_hw, 2, 1, -1, hw, err))
        return false;
    const Type *dy = shape_in(g, node, 0);
    int64_t c = dy->dim[image_axes(node).channel];
    *out = image_type(node, dy->dtype, dy->dim[0], c, hw);
    return pooled(node, dy->dtype, dy->dim[0], c, hw, &want, err) &&
           want_type(g, node, 0, &want, err);
}

SHAPE_RULE(avgpool_grad)
{
    return pool_gradient(g, node, out, err);
}

/* (dy, index) -> dx */
SHAPE_RULE(maxpool_index_grad)
{
    Type index = *shape_in(g, node, 0);
    index.dtype = DTYPE_U8;
    return pool_gradient(g, node, out, err) && want_type(g, node, 1, &index, err);
}

/* Which elements an output is made of is a table in the kernel, by element of a side: compiling
 * takes 6 us an element, 1.6 s for this many. */
enum { RESAMPLE_SIDE_MOST = 1 << 18 };

/* adaptive_avgpool, resize and their gradients: x with height and width hw, any size to any. */
SHAPE_RULE(resample)
{
    int64_t hw[2];
    if (!want_image(g, node, 0, err) || !want_ints(node, ATTR_hw, 2, 1, -1, hw, err))
        return false;
    if (node_flag(node, ATTR_nearest) && node_flag(node, ATTR_align_corners))
        return shape_fail(err, "E105", -1, "%s: align_corners is for bilinear interpolation",
                          op_name(node->op));
    const Type *x = shape_in(g, node, 0);
    ImageAxes ax = image_axes(node);
    *out = image_type(node, x->dtype, x->dim[0], x->dim[ax.channel], hw);
    for (int i = 0; i < 2; i++) {
        int64_t from = x->dim[ax.row + i], longest = from > hw[i] ? from : hw[i];
        if (longest > RESAMPLE_SIDE_MOST)
            return shape_fail(err, "E108", 0, "%s: a side of %" PRId64 " elements, %d are the most",
                              op_name(node->op), longest, RESAMPLE_SIDE_MOST);
    }
    return true;
}
