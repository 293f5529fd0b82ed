/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/forms/convolution.h"

#include "ir/support/divide.h"
#include "runtime/abi.h"

enum {
    COPY_PAD = 16,
    CHAIN_LEAST = 256, /* steps of a chain that is one of several */
    PANEL_MOST = 64,   /* columns of a panel of packed dy, for vectors of any width */
    PANEL_UNIT = 16,
    PHASES_MOST = 64,       /* of a data gradient; each is code of its own */
    NARROW_PHASES_MOST = 16 /* which is longer there */
};

ConvPart conv_part(OpKind op)
{
    return op == OP_conv2d ? CONV_FORWARD : op == OP_conv2d_wgrad ? CONV_WGRAD : CONV_DGRAD;
}

/* --- geometry --- */

/* Logical dims of an image type or of weights. */
static int64_t image_dim(const Type *t, bool nhwc, int logical)
{
    static const int at[4] = {0, 3, 1, 2};
    return t->dim[nhwc ? at[logical] : logical];
}

static void set_x(ConvGeometry *q, const Type *t)
{
    q->images = t->dim[0];
    q->c = image_dim(t, q->nhwc, 1);
    q->h = image_dim(t, q->nhwc, 2);
    q->w = image_dim(t, q->nhwc, 3);
}

static void set_y(ConvGeometry *q, const Type *t)
{
    q->k = image_dim(t, q->nhwc, 1);
    q->oh = image_dim(t, q->nhwc, 2);
    q->ow = image_dim(t, q->nhwc, 3);
}

ConvGeometry conv_geometry(const MatrixNode *m, ConvPart part)
{
    const Node *n = m->node;
    ConvGeometry q = {.nhwc = node_flag(n, ATTR_nhwc), .groups = node_int(n, ATTR_groups, 1)};
    for (int i = 0; i < 2; i++) {
        q.stride[i] = node_ints_at(n, ATTR_stride, i, 1);
        q.pad[i] = node_ints_at(n, ATTR_padding, i, 0);
        q.dilation[i] = node_ints_at(n, ATTR_dilation, i, 1);
    }
    const Type *a = matrix_operand_type(m, 0), *b = matrix_operand_type(m, 1);
    const Type *out = matrix_result_type(m);
    q.bf16 = a->dtype == DTYPE_BF16;
    set_x(&q, part == CONV_DGRAD ? out : a);
    set_y(&q, part == CONV_FORWARD ? out : part == CONV_DGRAD ? a : b);
    const Type *w = part == CONV_WGRAD ? out : b;
    q.r = w->dim[q.nhwc ? 0 : 2];
    q.s = w->dim[q.nhwc ? 1 : 3];
    return q;
}

/* --- axes --- */

ConvAxis conv_forward_axis(const ConvGeometry *q, int i)
{
    ConvAxis x = {.source = i ? q->w : q->h,
                  .result = i ? q->ow : q->oh,
                  .count = i ? q->ow : q->oh,
                  .step = 1,
                  .origin = -q->pad[i],
                  .source_step = q->stride[i],
                  .taps = i ? q->s : q->r,
                  .tap_step = q->dilation[i],
                  .weight_step = 1};
    return x;
}

static int64_t floor_mod(int64_t a, int64_t b)
{
    return (a % b + b) % b;
}

/* Places of x congruent to `phase` modulo the stride.  Weight t reaches x[first + stride * i] from
 * dy[i + d] with stride * d = first + pad - dilation * t, for those t for which d is whole; they
 * are evenly spaced, and d falls as t grows, so taps run from the last such t to the first. */
ConvAxis conv_gradient_axis(const ConvGeometry *q, int i, int64_t phase)
{
    int64_t stride = q->stride[i], size = i ? q->w : q->h, kernel = i ? q->s : q->r;
    int64_t t_first = -1, t_last = -1, taps = 0;
    for (int64_t t = 0; t < kernel; t++)
        if (floor_mod(phase + q->pad[i] - q->dilation[i] * t, stride) == 0) {
            t_first = taps++ ? t_first : t;
            t_last = t;
        }
    int64_t t_step = taps > 1 ? (t_last - t_first) / (taps - 1) : 1;
    ConvAxis x = {.source = i ? q->ow : q->oh,
                  .result = size,
                  .count = phase < size ? (size - phase + stride - 1) / stride : 0,
                  .first = phase,
                  .step = stride,
                  .source_step = 1,
                  .taps = taps,
                  .tap_step = t_step * q->dilation[i] / stride,
                  .weight_first = t_last,
                  .weight_step = -t_step};
    if (taps)
        x.origin = (phase + q->pad[i] - q->dilation[i] * t_last) / stride;
    return x;
}

int64_t conv_axis_span(const ConvAxis *x, int64_t count)
{
    return (count - 1) * x->source_step + (x->taps - 1) * x->tap_step + 1;
}

bool conv_axis_inside(const ConvAxis *x)
{
    return x->origin >= 0 && x->origin + conv_axis_span(x, x->count) <= x->source;
}

/* --- forms --- */

static bool is_product(const ConvGeometry *q)
{
    return q->nhwc && q->groups == 1 && q->r == 1 && q->s == 1 && q->stride[0] == 1 &&
           q->stride[1] == 1 && !q->pad[0] && !q->pad[1] && q->h == q->oh && q->w == q->ow;
}

static bool is_narrow(const ConvGeometry *q)
{
    int64_t width = q->groups ? conv_group_in(q) : 0;
    bool narrow = width == 1 || (width > 1 && width <= NARROW_GROUP && DEPTHWISE_PAD % width == 0 &&
                                 q->c % DEPTHWISE_PAD == 0);
    return q->nhwc && narrow && q->k == q->c && q->s * width <= CONV_NARROW_TAPS &&
           q->stride[0] * q->stride[1] <= NARROW_PHASES_MOST;
}

int64_t conv_pixel_floats(int64_t channels)
{
    return channels + (channels * 4 % 2048 == 0 ? COPY_PAD : 0);
}

/* The window of one pixel fits into a thread's scratch memory, or is read in place. */
static bool pass_fits(const ConvGeometry *q, const ConvAxis *y, const ConvAxis *x, int64_t channels)
{
    if (!y->taps || !x->taps || !y->count || !x->count ||
        (!q->bf16 && conv_axis_inside(y) && conv_axis_inside(x)))
        return true;
    int64_t places = conv_axis_span(y, 1) * conv_axis_span(x, 1);
    return places * conv_pixel_floats(channels) * 4 <= SCRIMP_WORK_BYTES;
}

static bool forward_fits(const ConvGeometry *q)
{
    ConvAxis y = conv_forward_axis(q, 0), x = conv_forward_axis(q, 1);
    return pass_fits(q, &y, &x, conv_group_in(q));
}

static bool gradient_fits(const ConvGeometry *q)
{
    int64_t phases = q->stride[0] * q->stride[1];
    bool fits = phases <= PHASES_MOST;
    for (int64_t p = 0; p < phases && fits; p++) {
        ConvAxis y = conv_gradient_axis(q, 0, p / q->stride[1]);
        ConvAxis x = conv_gradient_axis(q, 1, p % q->stride[1]);
        fits = pass_fits(q, &y, &x, conv_group_out(q));
    }
    return fits;
}

int64_t conv_x_columns(const ConvGeometry *q)
{
    return (q->ow - 1) * q->stride[1] + (q->s - 1) * q->dilation[1] + 1;
}

int64_t conv_band_rows(const ConvGeometry *q)
{
    return conv_wgrad_band(q->ow, conv_x_columns(q), conv_group_in(q));
}

/* The rows of x, of one channel if it must be, and the packed panel of dy. */
static bool weights_fit(const ConvGeometry *q)
{
    int64_t width = divide_up(conv_group_out(q), PANEL_UNIT) * PANEL_UNIT;
    int64_t panel = conv_band_rows(q) * q->ow * (width < PANEL_MOST ? width : PANEL_MOST);
    int64_t columns = 4 * conv_x_columns(q);
    int64_t rows = columns > CONV_BAND_BYTES ? columns : CONV_BAND_BYTES;
    return rows + 4 * (64 + panel) <= SCRIMP_WORK_BYTES;
}

ConvForm conv_form(const ConvGeometry *q, ConvPart part)
{
    if (is_product(q))
        return CONV_PRODUCT;
    return is_narrow(q) ? CONV_NARROW : conv_wide_form(q, part);
}

ConvForm conv_wide_form(const ConvGeometry *q, ConvPart part)
{
    bool fits = part == CONV_FORWARD ? forward_fits(q)
                : part == CONV_DGRAD ? gradient_fits(q)
                                     : weights_fit(q);
    return q->nhwc && fits ? CONV_WINDOW : CONV_PLAIN;
}

ConvChains conv_chains(const ConvGeometry *q, ConvPart part)
{
    int64_t channels = part == CONV_DGRAD ? conv_group_out(q) : conv_group_in(q);
    if (conv_form(q, part) != CONV_WINDOW)
        return CONV_ONE_CHAIN;
    return channels >= CHAIN_LEAST          ? CONV_PLACE_CHAINS
           : q->s * channels >= CHAIN_LEAST ? CONV_ROW_CHAINS
                                            : CONV_ONE_CHAIN;
}

Product conv_product(const ConvGeometry *q, ConvPart part)
{
    int64_t pixels = q->images * q->h * q->w;
    if (part == CONV_FORWARD) /* y = x w */
        return (Product){.m = pixels,
                         .n = q->k,
                         .k = q->c,
                         .a_row = q->c,
                         .a_k = 1,
                         .b_k = q->k,
                         .b_n = 1,
                         .bias = 2};
    if (part == CONV_DGRAD) /* dx = dy w' */
        return (Product){.m = pixels,
                         .n = q->c,
                         .k = q->k,
                         .a_row = q->k,
                         .a_k = 1,
                         .b_k = 1,
                         .b_n = q->k,
                         .bias = 2};
    return (Product){.m = q->c, /* dw = x' dy */
                     .n = q->k,
                     .k = pixels,
                     .a_row = 1,
                     .a_k = q->c,
                     .b_k = q->k,
                     .b_n = 1,
                     .bias = -1};
}

int64_t conv_narrow_chunks(const ConvGeometry *q)
{
    int64_t rows = q->ow ? q->images * q->oh : 0;
    return !q->c ? 0 : rows < DEPTHWISE_CHUNKS ? rows : DEPTHWISE_CHUNKS;
}

/* --- work --- */

double conv_flops(const ConvGeometry *q)
{
    return 2.0 * (double)(q->images * q->oh * q->ow * q->k) *
           (double)(conv_group_in(q) * q->r * q->s);
}

const char *conv_label(Pool *pool, const char *what, const ConvGeometry *q)
{
    return pool_printf(pool, "%s %lldx%lld/%lld %lldx%lldx%lldx%lld>%lld", what, (long long)q->r,
                       (long long)q->s, (long long)q->stride[0], (long long)q->images,
                       (long long)q->h, (long long)q->w, (long long)q->c, (long long)q->k);
}
