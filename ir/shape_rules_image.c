/* Shapes of matrix products, convolution, pooling, normalisation, losses and embeddings. */
#include "ir/cost_rules.h"
#include "ir/shape_rules.h"

#include <inttypes.h>
#include <string.h>

/* a[..,M,K] b[..,K,N] -> [..,M,N]; ta, tb: stored with the last two dims exchanged */
SHAPE_RULE(matmul)
{
    if (!want_float(g, node, 0, err) || !want_float(g, node, 1, err) ||
        !want_rank(g, node, 0, 2, TYPE_MAX_RANK, err) ||
        !want_rank(g, node, 1, 2, TYPE_MAX_RANK, err))
        return false;
    const Type *a = shape_in(g, node, 0), *b = shape_in(g, node, 1);
    int ta = node_flag(node, ATTR_ta), tb = node_flag(node, ATTR_tb);
    int64_t m = a->dim[a->rank - 2 + ta], ka = a->dim[a->rank - 1 - ta];
    int64_t kb = b->dim[b->rank - 2 + tb], n = b->dim[b->rank - 1 - tb];
    if (ka != kb)
        return shape_fail(
            err, "E101", 1, "matmul sums over %" PRId64 " elements of %s%s but %" PRId64 " of %s%s",
            ka, SHOW(a), ta ? " transposed" : "", kb, SHOW(b), tb ? " transposed" : "");
    Type batch_a = *a, batch_b = *b;
    batch_a.rank -= 2;
    batch_b.rank -= 2;
    if (!type_broadcast(&batch_a, &batch_b, out))
        return shape_fail(err, "E101", 1, "matmul: the batch dims of %s and %s do not broadcast",
                          SHOW(a), SHOW(b));
    out->dim[out->rank++] = m;
    out->dim[out->rank++] = n;
    return true;
}

static bool linear_weight(const Graph *g, const Node *node, int64_t *features, ShapeError *err)
{
    const Type *x = shape_in(g, node, 0), *w = shape_in(g, node, 1);
    int in_out = node_flag(node, ATTR_in_out);
    if (!want_float(g, node, 1, err) || !want_rank(g, node, 1, 2, 2, err))
        return false;
    *features = w->dim[in_out ? 1 : 0];
    if (w->dim[in_out ? 0 : 1] == x->dim[x->rank - 1])
        return true;
    return shape_fail(
        err, "E101", 0, "linear takes %" PRId64 " features here but the weight %s%s wants %" PRId64,
        x->dim[x->rank - 1], SHOW(w), in_out ? " (in, out)" : "", w->dim[in_out ? 0 : 1]);
}

SHAPE_RULE(linear)
{
    const Type *x = shape_in(g, node, 0);
    int64_t features;
    if (!want_float(g, node, 0, err))
        return false;
    if (x->rank < 2 || x->rank > 3) {
        shape_fail(err, "E103", 0, "linear needs 2-D or sequence input, got %s", SHOW(x));
        return x->rank > 3 ? shape_help(err, "|> flatten()") : false;
    }
    if (!linear_weight(g, node, &features, err) ||
        !want_vectors(g, node, 2, INPUT_NAMES("bias"), features, err))
        return false;
    *out = *x;
    out->dim[x->rank - 1] = features;
    return true;
}

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

static Type image_type(const Node *node, int64_t n, int64_t c, const int64_t hw[2])
{
    ImageAxes ax = image_axes(node);
    Type t = {.dtype = DTYPE_F32, .rank = 4};
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
    *out = image_type(node, x->dim[0], f.k, hw);
    return want_vectors(g, node, 2, INPUT_NAMES("bias"), f.k, err);
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
    Type want = image_type(node, dy->dim[0], f.k, expected);
    *out = image_type(node, dy->dim[0], channels, hw);
    return want_type(g, node, 0, &want, err);
}

/* (x, dy) -> dw of height and width hw */
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
    Type want = image_type(node, x->dim[0], k, expected);
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
    *out = image_type(node, x->dim[0], channels, hw);
    return want_vectors(g, node, 2, INPUT_NAMES("bias"), channels, err);
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
static bool pooled(const Node *node, int64_t n, int64_t c, const int64_t hw[2], Type *out,
                   ShapeError *err)
{
    Window w;
    int64_t result[2];
    if (!pool_window(node, &w, err) || !window_length(node, &w, 0, hw[0], &result[0], err) ||
        !window_length(node, &w, 1, hw[1], &result[1], err))
        return false;
    *out = image_type(node, n, c, result);
    return true;
}

/* kernel, stride (default: kernel), padding, ceil */
SHAPE_RULE(pool)
{
    if (!want_image(g, node, 0, err))
        return false;
    const Type *x = shape_in(g, node, 0);
    ImageAxes ax = image_axes(node);
    return pooled(node, x->dim[0], x->dim[ax.channel], &x->dim[ax.row], out, err);
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
    return pooled(node, x->dim[0], x->dim[ax.channel], &x->dim[ax.row], &want, err) &&
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
    *out = image_type(node, dy->dim[0], c, hw);
    return pooled(node, dy->dim[0], c, hw, &want, err) && want_type(g, node, 0, &want, err);
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
    *out = image_type(node, x->dim[0], x->dim[ax.channel], hw);
    for (int i = 0; i < 2; i++) {
        int64_t from = x->dim[ax.row + i], longest = from > hw[i] ? from : hw[i];
        if (longest > RESAMPLE_SIDE_MOST)
            return shape_fail(err, "E108", 0, "%s: a side of %" PRId64 " elements, %d are the most",
                              op_name(node->op), longest, RESAMPLE_SIDE_MOST);
    }
    return true;
}

/* Channels of x: dim `axis`, 1 by default. */
static bool bn_channels(const Graph *g, const Node *node, int i, int64_t *channels, ShapeError *err)
{
    int axis;
    if (!want_float(g, node, i, err) || !want_rank(g, node, i, 2, TYPE_MAX_RANK, err) ||
        !want_axis(node, shape_in(g, node, i)->rank, 1, &axis, err))
        return false;
    *channels = shape_in(g, node, i)->dim[axis];
    return true;
}

SHAPE_RULE(bn_stats)
{
    int64_t c;
    if (!bn_channels(g, node, 0, &c, err))
        return false;
    out[0] = out[1] = type_make(DTYPE_F32, 1, &c);
    return true;
}

/* bn_apply (x, mean, var, gamma, beta), bn_grad_x (dy, x, mean, var, gamma, dgamma, dbeta) */
SHAPE_RULE(bn_apply)
{
    int64_t c;
    int images = node->op == OP_bn_grad_x ? 2 : 1;
    if (!bn_channels(g, node, 0, &c, err))
        return false;
    *out = *shape_in(g, node, 0);
    return (images == 1 || want_type(g, node, 1, out, err)) &&
           want_vectors(g, node, images,
                        INPUT_NAMES("mean", "variance", "weight", "bias", "d.weight", "d.bias"), c,
                        err);
}

/* (dy, x, mean, var) -> dgamma, dbeta */
SHAPE_RULE(bn_grad_sums)
{
    int64_t c;
    if (!bn_channels(g, node, 0, &c, err))
        return false;
    out[0] = out[1] = type_make(DTYPE_F32, 1, &c);
    return want_type(g, node, 1, shape_in(g, node, 0), err) &&
           want_vectors(g, node, 2, INPUT_NAMES("mean", "variance"), c, err);
}

/* x -> y, or (dy, x) -> dx: windows of channels, which are dim `axis`, 1 by default */
SHAPE_RULE(lrn)
{
    int64_t channels, window = node_int(node, ATTR_window, 5);
    if (!bn_channels(g, node, 0, &channels, err))
        return false;
    *out = *shape_in(g, node, 0);
    if (window < 1 || window > LRN_WINDOW_MOST)
        return shape_fail(err, "E105", -1, "%s: a window of 1 to %d channels, got %" PRId64,
                          op_name(node->op), LRN_WINDOW_MOST, window);
    /* Else 0 or a negative number gets an exponent: inf and nan. */
    if (!(node_float(node, ATTR_k, 1) > 0))
        return shape_fail(err, "E105", -1, "%s: k must be above 0", op_name(node->op));
    if (!(node_float(node, ATTR_alpha, 1) >= 0))
        return shape_fail(err, "E105", -1, "%s: alpha must not be negative", op_name(node->op));
    if (channels > LRN_CHANNELS_MOST)
        return shape_fail(err, "E108", 0, "%s of %" PRId64 " channels, %d are the most",
                          op_name(node->op), channels, LRN_CHANNELS_MOST);
    return node->n_in < 2 || want_type(g, node, 1, out, err);
}

/* x without its last axis: the shape of a layer norm's mean and rstd */
static Type rows_of(const Type *x)
{
    Type t = *x;
    t.dim[--t.rank] = 0;
    return t;
}

static bool want_rows(const Graph *g, const Node *node, ShapeError *err)
{
    return want_float(g, node, 0, err) && want_rank(g, node, 0, 1, TYPE_MAX_RANK, err);
}

/* (x, gamma?, beta?) -> y, mean, rstd */
SHAPE_RULE(layernorm)
{
    if (!want_rows(g, node, err))
        return false;
    const Type *x = shape_in(g, node, 0);
    out[0] = *x;
    out[1] = out[2] = rows_of(x);
    return want_vectors(g, node, 1, INPUT_NAMES("weight", "bias"), x->dim[x->rank - 1], err);
}

/* dy, x, mean, rstd: the common inputs of the gradients */
static bool layernorm_saved(const Graph *g, const Node *node, ShapeError *err)
{
    if (!want_rows(g, node, err))
        return false;
    Type rows = rows_of(shape_in(g, node, 0));
    return want_type(g, node, 1, shape_in(g, node, 0), err) && want_type(g, node, 2, &rows, err) &&
           want_type(g, node, 3, &rows, err);
}

/* (dy, x, mean, rstd, gamma?) -> dx */
SHAPE_RULE(layernorm_grad)
{
    if (!layernorm_saved(g, node, err))
        return false;
    *out = *shape_in(g, node, 0);
    return want_vectors(g, node, 4, INPUT_NAMES("weight"), out->dim[out->rank - 1], err);
}

/* (dy, x, mean, rstd) -> dgamma, dbeta */
SHAPE_RULE(layernorm_grad_sums)
{
    if (!layernorm_saved(g, node, err))
        return false;
    const Type *dy = shape_in(g, node, 0);
    out[0] = out[1] = type_make(DTYPE_F32, 1, &dy->dim[dy->rank - 1]);
    return true;
}

static bool loss_attrs(const Node *node, bool *each, ShapeError *err)
{
    double smoothing = node_float(node, ATTR_smoothing, 0.0);
    const char *reduction = node_string(node, ATTR_reduction, "mean");
    *each = strcmp(reduction, "none") == 0;
    if (!(smoothing >= 0.0 && smoothing <= 1.0))
        return shape_fail(err, "E105", -1, "%s: label smoothing %g is not in 0..1",
                          op_name(node->op), smoothing);
    if (*each || strcmp(reduction, "sum") == 0 || strcmp(reduction, "mean") == 0)
        return true;
    return shape_fail(err, "E105", -1, "%s: '%.32s' is no reduction", op_name(node->op), reduction);
}

/* logits [.., C at axis, ..] (default: the last axis), labels: integers, without that axis, weights
 * [C] (optional) -> f32[], or the shape of the labels when nothing is reduced */
SHAPE_RULE(cross_entropy)
{
    int axis, weight = node->op == OP_cross_entropy_grad ? 3 : 2;
    bool each;
    if (!want_float(g, node, 0, err) || !want_integer(g, node, 1, err) ||
        !want_rank(g, node, 0, 1, TYPE_MAX_RANK, err) ||
        !want_axis(node, shape_in(g, node, 0)->rank, shape_in(g, node, 0)->rank - 1, &axis, err))
        return false;
    const Type *x = shape_in(g, node, 0), *labels = shape_in(g, node, 1);
    Type want = {.dtype = DTYPE_F32};
    for (int i = 0; i < x->rank; i++)
        if (i != axis)
            want.dim[want.rank++] = x->dim[i];
    if (!type_same_shape(labels, &want))
        return shape_fail(err, "E101", 1,
                          "%s: labels are %s, expected %s for logits %s with classes in dim %d",
                          op_name(node->op), SHOW(labels), SHOW(&want), SHOW(x), axis);
    if (!loss_attrs(node, &each, err) ||
        !want_vectors(g, node, weight, INPUT_NAMES("weight"), x->dim[axis], err))
        return false;
    *out = each ? want : type_scalar(DTYPE_F32);
    return true;
}

/* Appends the width of the table to the shape of the ids. */
static bool embedded(const Node *node, const Type *ids, int64_t width, Type *out, ShapeError *err)
{
    if (ids->rank == TYPE_MAX_RANK)
        return shape_fail(err, "E103", 0, "%s: the result has more than %d dims", op_name(node->op),
                          TYPE_MAX_RANK);
    *out = *ids;
    out->dtype = DTYPE_F32;
    out->dim[out->rank++] = width;
    return true;
}

/* (ids, table[V,C]) -> [.., C] */
SHAPE_RULE(embedding)
{
    return want_integer(g, node, 0, err) && want_float(g, node, 1, err) &&
           want_rank(g, node, 1, 2, 2, err) &&
           embedded(node, shape_in(g, node, 0), shape_in(g, node, 1)->dim[1], out, err);
}

/* (ids, dy) -> gradient of the table, whose shape is an attribute */
SHAPE_RULE(embedding_grad)
{
    int64_t dims[2];
    Type dy;
    if (!want_integer(g, node, 0, err) || !want_ints(node, ATTR_shape, 2, 1, -1, dims, err) ||
        !embedded(node, shape_in(g, node, 0), dims[1], &dy, err))
        return false;
    *out = type_make(DTYPE_F32, 2, dims);
    return want_type(g, node, 1, &dy, err);
}
