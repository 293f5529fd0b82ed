/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random cases of reductions, softmax, matrix products, convolutions and pooling; see op_cases.h.
 */
#include "op_cases.h"

/* --- reductions --- */

Type op_reduced(OpCase *c, int most_dims, AttrList *attrs)
{
    Type t = op_shape(c, 0, most_dims);
    int64_t axes[TYPE_MAX_RANK];
    int n = 0;
    for (int i = 0; i < t.rank; i++)
        if (op_coin(c))
            axes[n++] = i;
    if (n > 0)
        attrs_ints(attrs, ATTR_axes, axes, n);
    if (op_coin(c))
        attrs_int(attrs, ATTR_keepdims, 1);
    return t;
}

int op_axis(OpCase *c, AttrList *attrs, Type t)
{
    int axis = (int)op_int(c, 0, t.rank - 1);
    attrs_int(attrs, ATTR_axis, axis);
    return axis;
}

static void op_reduction(OpCase *c, OpKind op)
{
    AttrList attrs = {0};
    Type t = op_reduced(c, 5, &attrs);
    if (op != OP_mean && op_int(c, 0, 3) == 0)
        op_integers(c, t, DTYPE_I32, -100, 100);
    else
        op_floats(c, t, -1, 3);
    op_done(c, op, &attrs);
}
void op_sum(OpCase *c)
{
    op_reduction(c, OP_sum);
}
void op_mean(OpCase *c)
{
    op_reduction(c, OP_mean);
}
void op_reduce_max(OpCase *c)
{
    op_reduction(c, OP_reduce_max);
}
void op_sumsq(OpCase *c)
{
    op_normal(c, op_shape(c, 0, 4));
    op_done(c, OP_sumsq, NULL);
}

static void op_any_axis(OpCase *c, AttrList *attrs, Type t)
{
    if (op_coin(c))
        op_axis(c, attrs, t);
}

void op_argmax(OpCase *c)
{
    AttrList attrs = {0};
    Type t = op_shape(c, 1, 4);
    op_any_axis(c, &attrs, t);
    op_normal(c, t);
    op_done(c, OP_argmax, &attrs);
}

static void op_softmax_like(OpCase *c, OpKind op, int inputs)
{
    AttrList attrs = {0};
    Type t = op_shape(c, 1, 4);
    op_any_axis(c, &attrs, t);
    for (int i = 0; i < inputs; i++)
        op_floats(c, t, i ? -2 : -8, i ? 1 : 8);
    op_done(c, op, &attrs);
}
void op_softmax(OpCase *c)
{
    op_softmax_like(c, OP_softmax, 1);
}
void op_log_softmax(OpCase *c)
{
    op_softmax_like(c, OP_log_softmax, 1);
}
void op_softmax_grad(OpCase *c)
{
    op_softmax_like(c, OP_softmax_grad, 2);
}
void op_log_softmax_grad(OpCase *c)
{
    op_softmax_like(c, OP_log_softmax_grad, 2);
}

/* --- matrix products --- */

static void op_product(OpCase *c, Type a, Type b, int64_t m, int64_t k, int64_t n, bool pairs)
{
    AttrList attrs = {0};
    if (pairs)
        attrs_int(&attrs, ATTR_pairs, 1);
    bool ta = op_coin(c), tb = op_coin(c);
    a.dim[a.rank++] = ta ? k : m;
    a.dim[a.rank++] = ta ? m : k;
    b.dim[b.rank++] = tb ? n : k;
    b.dim[b.rank++] = tb ? k : n;
    if (ta)
        attrs_int(&attrs, ATTR_ta, 1);
    if (tb)
        attrs_int(&attrs, ATTR_tb, 1);
    op_normal(c, a);
    op_normal(c, b);
    op_done(c, OP_matmul, &attrs);
}

static void op_any_matmul(OpCase *c, bool pairs)
{
    Type batch = {.dtype = DTYPE_F32, .rank = (int)op_int(c, 0, 2)};
    for (int i = 0; i < batch.rank; i++)
        batch.dim[i] = op_int(c, 1, 3);
    Type a = op_coin(c) ? batch : op_smaller(c, batch),
         b = op_coin(c) ? batch : op_smaller(c, batch);
    int64_t m = op_dim(c), k = op_dim(c), n = op_dim(c);
    op_product(c, a, b, m, k, n, pairs);
}

void op_matmul(OpCase *c)
{
    op_any_matmul(c, false);
}

static void op_matmul_pairs(OpCase *c)
{
    op_any_matmul(c, true);
}

/* So many tiles that a device's threads make 8 x 8 results. */
static void op_many_tiles(OpCase *c, int64_t k)
{
    Type batch = {.dtype = DTYPE_F32, .rank = 1, .dim = {9}};
    int64_t m = op_int(c, 129, 200), n = op_int(c, 449, 500);
    op_product(c, batch, batch, m, k, n, false);
}

static void op_matmul_tiles(OpCase *c)
{
    op_many_tiles(c, op_int(c, 1, 40));
}

static void op_matmul_chains(OpCase *c)
{
    op_many_tiles(c, op_int(c, 257, 300));
}

static void op_any_linear(OpCase *c, bool pairs)
{
    AttrList attrs = {0};
    if (pairs)
        attrs_int(&attrs, ATTR_pairs, 1);
    int64_t in = op_dim(c), out = op_dim(c), rows = op_dim(c);
    bool in_out = op_coin(c);
    if (in_out)
        attrs_int(&attrs, ATTR_in_out, 1);
    int64_t rank = op_int(c, 2, 4);
    op_normal(c, rank == 2 ? DIMS(rows, in) : rank == 3 ? DIMS(2, rows, in) : DIMS(2, 3, rows, in));
    op_normal(c, in_out ? DIMS(in, out) : DIMS(out, in));
    if (op_coin(c))
        op_normal(c, DIMS(out));
    op_done(c, OP_linear, &attrs);
}

void op_linear(OpCase *c)
{
    op_any_linear(c, false);
}

static void op_linear_pairs(OpCase *c)
{
    op_any_linear(c, true);
}

Type op_image(bool nhwc, int64_t n, int64_t channels, int64_t h, int64_t w)
{
    return nhwc ? DIMS(n, h, w, channels) : DIMS(n, channels, h, w);
}

void op_two(OpCase *c, AttrList *attrs, AttrKey key, int64_t low, int64_t high, int64_t *pair)
{
    pair[0] = op_int(c, low, high);
    pair[1] = op_int(c, low, high);
    attrs_ints(attrs, key, pair, 2);
}

static void op_conv_sizes(OpCase *c, OpConv *v)
{
    static const int64_t channels[] = {1, 2, 3, 4, 8, 16, 17};
    *v = (OpConv){.groups = op_int(c, 0, 2) ? 1 : op_int(c, 2, 3), .nhwc = op_coin(c)};
    v->n = op_int(c, 1, 2);
    v->in = channels[op_int(c, 0, v->groups > 1 ? 3 : 6)];
    v->out = channels[op_int(c, 0, v->groups > 1 ? 3 : 6)] * v->groups;
    v->h = op_int(c, 3, 9);
    v->w = op_int(c, 3, 9);
    v->r = op_int(c, 1, 3);
    v->s = op_int(c, 1, 3);
    op_two(c, &v->attrs, ATTR_stride, 1, 2, v->stride);
    op_two(c, &v->attrs, ATTR_padding, 0, 1, v->padding);
    op_two(c, &v->attrs, ATTR_dilation, 1, 2, v->dilation);
    attrs_int(&v->attrs, ATTR_groups, v->groups);
    if (v->nhwc)
        attrs_int(&v->attrs, ATTR_nhwc, 1);
}

Type op_filter(const OpConv *v)
{
    return v->nhwc ? DIMS(v->r, v->s, v->in, v->out) : DIMS(v->out, v->in, v->r, v->s);
}

static int64_t op_conv_length(const OpConv *v, int i)
{
    int64_t size = i ? v->w : v->h, k = i ? v->s : v->r;
    return (size + 2 * v->padding[i] - v->dilation[i] * (k - 1) - 1) / v->stride[i] + 1;
}

Type op_conv_input(const OpConv *v)
{
    return op_image(v->nhwc, v->n, v->in * v->groups, v->h, v->w);
}

Type op_conv_output(const OpConv *v)
{
    return op_image(v->nhwc, v->n, v->out, op_conv_length(v, 0), op_conv_length(v, 1));
}

void op_conv2d(OpCase *c)
{
    OpConv v;
    op_conv_sizes(c, &v);
    op_normal(c, op_conv_input(&v));
    op_normal(c, op_filter(&v));
    if (op_coin(c))
        op_normal(c, DIMS(v.out));
    op_done(c, OP_conv2d, &v.attrs);
}

bool op_conv_fits(const OpConv *v)
{
    return v->h + 2 * v->padding[0] > v->dilation[0] * (v->r - 1) &&
           v->w + 2 * v->padding[1] > v->dilation[1] * (v->s - 1);
}

void op_conv2d_dgrad(OpCase *c)
{
    OpConv v;
    do
        op_conv_sizes(c, &v);
    while (!op_conv_fits(&v));
    op_normal(c, op_conv_output(&v));
    op_normal(c, op_filter(&v));
    attrs_ints(&v.attrs, ATTR_hw, (const int64_t[]){v.h, v.w}, 2);
    op_done(c, OP_conv2d_dgrad, &v.attrs);
}

void op_conv2d_wgrad(OpCase *c)
{
    OpConv v;
    do
        op_conv_sizes(c, &v);
    while (!op_conv_fits(&v));
    op_normal(c, op_conv_input(&v));
    op_normal(c, op_conv_output(&v));
    attrs_ints(&v.attrs, ATTR_hw, (const int64_t[]){v.r, v.s}, 2);
    op_done(c, OP_conv2d_wgrad, &v.attrs);
}

/* The convolution, or its data gradient. */
static void op_conv_of(OpCase *c, OpKind op, OpConv *v)
{
    const int64_t hw[] = {v->h, v->w};
    op_normal(c, op == OP_conv2d ? op_conv_input(v) : op_conv_output(v));
    op_normal(c, op_filter(v));
    if (op == OP_conv2d_dgrad)
        attrs_ints(&v->attrs, ATTR_hw, hw, 2);
    op_done(c, op, &v->attrs);
}

/* As many: 3 x 3 taps of 3 channels, to 64 or back. */
static void op_conv_tiles(OpCase *c, OpKind op)
{
    OpConv v = {.stride = {1, 1}, .padding = {1, 1}, .dilation = {1, 1}, .groups = 1, .nhwc = true};
    v.n = 2;
    v.h = op_int(c, 93, 97);
    v.w = op_int(c, 93, 97);
    v.r = v.s = 3;
    v.in = op == OP_conv2d ? 3 : 64;
    v.out = 67 - v.in;
    attrs_ints(&v.attrs, ATTR_padding, v.padding, 2);
    attrs_int(&v.attrs, ATTR_nhwc, 1);
    op_conv_of(c, op, &v);
}

static void op_conv2d_tiles(OpCase *c)
{
    op_conv_tiles(c, OP_conv2d);
}

static void op_conv2d_dgrad_tiles(OpCase *c)
{
    op_conv_tiles(c, OP_conv2d_dgrad);
}

const OpRow op_tile_cases[] = {{OP_matmul, op_matmul_tiles},
                               {OP_matmul, op_matmul_chains},
                               {OP_conv2d, op_conv2d_tiles},
                               {OP_conv2d_dgrad, op_conv2d_dgrad_tiles}};
const int op_tile_cases_n = sizeof op_tile_cases / sizeof *op_tile_cases;

/* The convolution's output goes in; output padding up to what the stride or the dilation allow. */
void op_deconv2d(OpCase *c)
{
    OpConv v;
    int64_t extra[2];
    op_conv_sizes(c, &v);
    for (int i = 0; i < 2; i++) {
        int64_t most = v.stride[i] > v.dilation[i] ? v.stride[i] : v.dilation[i];
        extra[i] = op_int(c, 0, most - 1);
    }
    attrs_ints(&v.attrs, ATTR_output_padding, extra, 2);
    op_normal(c, op_image(v.nhwc, v.n, v.out, v.h, v.w));
    op_normal(c, op_filter(&v));
    if (op_coin(c))
        op_normal(c, DIMS(v.in * v.groups));
    op_done(c, OP_deconv2d, &v.attrs);
}

/* --- pooling --- */

typedef struct OpPool {
    AttrList attrs;
    int64_t kernel[2], stride[2], padding[2];
    bool nhwc;
    Type x;
} OpPool;

static void op_pool_sizes(OpCase *c, OpPool *p)
{
    static const int64_t channels[] = {1, 3, 8, 16, 17, 65};
    *p = (OpPool){.nhwc = op_coin(c)};
    op_two(c, &p->attrs, ATTR_kernel, 1, 3, p->kernel);
    if (op_coin(c))
        op_two(c, &p->attrs, ATTR_stride, 1, 3, p->stride);
    for (int i = 0; i < 2; i++)
        p->padding[i] = op_int(c, 0, p->kernel[i] / 2);
    attrs_ints(&p->attrs, ATTR_padding, p->padding, 2);
    if (op_coin(c))
        attrs_int(&p->attrs, ATTR_ceil, 1);
    if (op_coin(c))
        attrs_int(&p->attrs, ATTR_count_pad, 1);
    if (p->nhwc)
        attrs_int(&p->attrs, ATTR_nhwc, 1);
    p->x = op_image(p->nhwc, op_int(c, 1, 3), channels[op_int(c, 0, 5)], op_int(c, 1, 9),
                    op_int(c, 1, 9));
}

static void op_pool(OpCase *c, OpKind op)
{
    OpPool p;
    op_pool_sizes(c, &p);
    op_normal(c, p.x);
    op_done(c, op, &p.attrs);
}
void op_maxpool(OpCase *c)
{
    op_pool(c, OP_maxpool);
}
void op_avgpool(OpCase *c)
{
    op_pool(c, OP_avgpool);
}

/* dy's shape is what the forward operation gives, in a graph of its own. */
static void op_pool_grad(OpCase *c, OpKind op, OpKind forward)
{
    OpPool p;
    ShapeError err;
    op_pool_sizes(c, &p);
    Graph *g = graph_new(c->pool, "shape");
    ValueId x = graph_add_source(g, OP_input, p.x, NULL, "%x", (Loc){0});
    NodeId n = graph_try_add(g, forward, &x, 1, &p.attrs, NULL, (Loc){0}, &err);
    if (n == NODE_NONE)
        return;
    Type y = *value_type(g, graph_node(g, n)->out[0]);
    op_normal(c, y);
    if (op == OP_maxpool_grad)
        op_integers(c, p.x, DTYPE_F32, -9, 9); /* ties */
    if (op == OP_maxpool_index_grad)
        op_integers(c, y, DTYPE_U8, 0, p.kernel[0] * p.kernel[1] - 1);
    if (op != OP_maxpool_grad)
        attrs_ints(&p.attrs, ATTR_hw, &p.x.dim[p.nhwc ? 1 : 2], 2);
    op_done(c, op, &p.attrs);
}
void op_maxpool_grad(OpCase *c)
{
    op_pool_grad(c, OP_maxpool_grad, OP_maxpool);
}
void op_maxpool_index(OpCase *c)
{
    OpPool p;
    op_pool_sizes(c, &p);
    op_integers(c, p.x, DTYPE_F32, -9, 9); /* ties */
    op_done(c, OP_maxpool_index, &p.attrs);
}
void op_maxpool_index_grad(OpCase *c)
{
    op_pool_grad(c, OP_maxpool_index_grad, OP_maxpool);
}
void op_avgpool_grad(OpCase *c)
{
    op_pool_grad(c, OP_avgpool_grad, OP_avgpool);
}

/* --- resampling --- */

/* Sizes up to 40, any to any, some equal; channels below, at and past a group of vectors.  Now and
 * then so many that a task takes a block of them, or a row that does not fit into scratch. */
static void op_resample(OpCase *c, OpKind op)
{
    static const int64_t channels[] = {1, 2, 3, 8, 16, 19, 33, 65, 150};
    AttrList attrs = {0};
    bool nhwc = op_int(c, 0, 3) > 0;
    int64_t hw[2], size[2], n = channels[op_int(c, 0, 8)], large = op_int(c, 0, 9);
    for (int i = 0; i < 2; i++) {
        hw[i] = op_coin(c) ? op_int(c, 1, 7) : op_int(c, 1, 40);
        size[i] = op_coin(c) ? op_int(c, 1, 7) : op_coin(c) ? op_int(c, 1, 40) : hw[i];
    }
    if (large < 2) {
        nhwc = true;
        n = large ? 300 : 17;
        hw[0] = op_int(c, 1, 4);
        hw[1] = op_int(c, 60, 90) * (large ? 1 : 280);
    }
    if (nhwc)
        attrs_int(&attrs, ATTR_nhwc, 1);
    if (op == OP_resize || op == OP_resize_grad) {
        int64_t kind = op_int(c, 0, 3);
        if (kind < 2)
            attrs_int(&attrs, kind ? ATTR_nearest : ATTR_align_corners, 1);
    }
    attrs_ints(&attrs, ATTR_hw, size, 2);
    op_normal(c, op_image(nhwc, op_int(c, 1, 2), n, hw[0], hw[1]));
    op_done(c, op, &attrs);
}
void op_adaptive_avgpool(OpCase *c)
{
    op_resample(c, OP_adaptive_avgpool);
}
void op_adaptive_avgpool_grad(OpCase *c)
{
    op_resample(c, OP_adaptive_avgpool_grad);
}
void op_resize(OpCase *c)
{
    op_resample(c, OP_resize);
}
void op_resize_grad(OpCase *c)
{
    op_resample(c, OP_resize_grad);
}

/* A convolution by 1x1 and its gradients. */
static void op_pairs_conv(OpCase *c, OpKind op)
{
    AttrList attrs = {0};
    attrs_int(&attrs, ATTR_pairs, 1);
    attrs_int(&attrs, ATTR_nhwc, 1);
    int64_t n = op_int(c, 1, 2), h = op_int(c, 1, 9), w = op_int(c, 1, 9), in = op_dim(c),
            out = op_dim(c), hw[] = {h, w};
    if (op == OP_conv2d_wgrad)
        hw[0] = hw[1] = 1;
    if (op != OP_conv2d)
        attrs_ints(&attrs, ATTR_hw, hw, 2);
    op_normal(c, DIMS(n, h, w, op == OP_conv2d_dgrad ? out : in));
    op_normal(c, op == OP_conv2d_wgrad ? DIMS(n, h, w, out) : DIMS(1, 1, in, out));
    op_done(c, op, &attrs);
}

static void op_conv2d_pairs(OpCase *c)
{
    op_pairs_conv(c, OP_conv2d);
}

static void op_conv2d_dgrad_pairs(OpCase *c)
{
    op_pairs_conv(c, OP_conv2d_dgrad);
}

static void op_conv2d_wgrad_pairs(OpCase *c)
{
    op_pairs_conv(c, OP_conv2d_wgrad);
}

/* By windows: of as many channels as fill registers. */
static void op_pairs_window(OpCase *c, OpKind op)
{
    OpConv v;
    do {
        op_conv_sizes(c, &v);
        v.groups = 1;
        v.nhwc = true;
        int64_t channels = 32 * (op_int(c, 0, 3) ? op_int(c, 1, 9) : 17);
        v.in = op == OP_conv2d ? channels : op_dim(c);
        v.out = op == OP_conv2d ? op_dim(c) : channels;
    } while (!op_conv_fits(&v) || (op == OP_conv2d_dgrad && v.stride[0] * v.stride[1] > 1));
    attrs_int(&v.attrs, ATTR_groups, 1);
    attrs_int(&v.attrs, ATTR_nhwc, 1);
    attrs_int(&v.attrs, ATTR_pairs, 1);
    op_conv_of(c, op, &v);
}

static void op_conv2d_windows(OpCase *c)
{
    op_pairs_window(c, OP_conv2d);
}

static void op_conv2d_dgrad_windows(OpCase *c)
{
    op_pairs_window(c, OP_conv2d_dgrad);
}

const OpRow op_pairs_cases[] = {{OP_matmul, op_matmul_pairs},
                                {OP_linear, op_linear_pairs},
                                {OP_conv2d, op_conv2d_pairs},
                                {OP_conv2d_dgrad, op_conv2d_dgrad_pairs},
                                {OP_conv2d_wgrad, op_conv2d_wgrad_pairs},
                                {OP_conv2d, op_conv2d_windows},
                                {OP_conv2d_dgrad, op_conv2d_dgrad_windows}};
const int op_pairs_cases_n = sizeof op_pairs_cases / sizeof *op_pairs_cases;
