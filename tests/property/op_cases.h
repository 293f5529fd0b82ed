/* Random one-node graphs: a generator for every operation that has a lowering rule.  Shapes
 * straddle vector lengths: 1s, multiples and neighbours of multiples of 4, 8 and 16.  Included by
 * one file of a test; everything is static. */
#ifndef SCRIMP_TESTS_PROPERTY_OP_CASES_H
#define SCRIMP_TESTS_PROPERTY_OP_CASES_H

#include "ir/graph.h"

#include <math.h>
#include <string.h>

enum { OP_CASE_INPUTS = 10 };

typedef struct OpCase {
    Pool *pool;
    Graph *g;
    uint64_t rng;
    NodeId node; /* under test; NODE_NONE when the drawn shapes do not fit */
    int n_in;
    ValueId in[OP_CASE_INPUTS];
    double *data[OP_CASE_INPUTS];
} OpCase;

typedef void OpCaseMake(OpCase *c);

/* SplitMix64 (Steele, Lea and Flood 2014). */
static uint64_t op_bits(OpCase *c)
{
    uint64_t z = c->rng += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static int64_t op_int(OpCase *c, int64_t low, int64_t high)
{
    return low + (int64_t)(op_bits(c) % (uint64_t)(high - low + 1));
}

static bool op_coin(OpCase *c)
{
    return op_bits(c) & 1;
}

static double op_uniform(OpCase *c, double low, double high)
{
    return low + (high - low) * (double)(op_bits(c) >> 11) * 0x1p-53;
}

/* --- inputs --- */

static ValueId op_source(OpCase *c, Type t, double **data)
{
    ValueId v = graph_add_source(c->g, OP_input, t, NULL, "%in", (Loc){0, 0});
    c->in[c->n_in] = v;
    *data = c->data[c->n_in++] = POOL_ARRAY(c->pool, (size_t)type_elements(&t), double);
    return v;
}

static ValueId op_floats(OpCase *c, Type t, double low, double high)
{
    double *data;
    t.dtype = DTYPE_F32;
    ValueId v = op_source(c, t, &data);
    for (int64_t i = 0; i < type_elements(&t); i++)
        data[i] = (double)(float)op_uniform(c, low, high);
    return v;
}

static ValueId op_normal(OpCase *c, Type t)
{
    return op_floats(c, t, -3, 3);
}

static ValueId op_integers(OpCase *c, Type t, DType dtype, int64_t low, int64_t high)
{
    double *data;
    t.dtype = dtype;
    ValueId v = op_source(c, t, &data);
    for (int64_t i = 0; i < type_elements(&t); i++)
        data[i] = (double)op_int(c, low, high);
    return v;
}

static ValueId op_scalar(OpCase *c, double low, double high)
{
    return op_floats(c, type_scalar(DTYPE_F32), low, high);
}

/* --- shapes --- */

static int64_t op_dim(OpCase *c)
{
    static const int64_t dims[] = {1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 23, 31, 32, 33, 48, 65};
    return dims[op_int(c, 0, (int64_t)(sizeof dims / sizeof *dims) - 1)];
}

/* At most about 6000 elements, and sometimes a long vector. */
static Type op_shape(OpCase *c, int low, int high)
{
    Type t = {.dtype = DTYPE_F32, .rank = (int)op_int(c, low, high)};
    int64_t room = 6000;
    for (int i = t.rank - 1; i >= 0; i--) {
        int64_t d = op_dim(c);
        t.dim[i] = d <= room ? d : room;
        room /= t.dim[i];
    }
    if (t.rank > 0 && op_int(c, 0, 9) == 0)
        t.dim[op_int(c, 0, t.rank - 1)] *= room > 1 ? room : 1;
    return t;
}

static Type op_smaller(OpCase *c, Type t)
{
    int drop = op_coin(c) ? 0 : (int)op_int(c, 0, t.rank);
    memmove(t.dim, t.dim + drop, (size_t)(t.rank - drop) * sizeof *t.dim);
    t.rank -= drop;
    for (int i = 0; i < t.rank; i++)
        if (op_int(c, 0, 2) == 0)
            t.dim[i] = 1;
    return t;
}

static void op_pair(OpCase *c, Type *a, Type *b)
{
    Type t = op_shape(c, 0, 4);
    *a = op_coin(c) ? t : op_smaller(c, t);
    *b = op_coin(c) ? t : op_smaller(c, t);
}

static Type op_dims(int rank, const int64_t *dims)
{
    return type_make(DTYPE_F32, rank, dims);
}
#define DIMS(...)                                                                                  \
    op_dims((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

/* --- the node --- */

static void op_on(OpCase *c, OpKind op, const ValueId *in, int n_in, const AttrList *attrs)
{
    ShapeError err;
    c->node = graph_try_add(c->g, op, in, n_in, attrs, "%out", (Loc){0, 0}, &err);
}

static void op_done(OpCase *c, OpKind op, const AttrList *attrs)
{
    op_on(c, op, c->in, c->n_in, attrs);
}

/* --- sources and counting --- */

static void op_const(OpCase *c)
{
    AttrList attrs = {0};
    attrs_float(&attrs, ATTR_value, op_uniform(c, -3, 3));
    ValueId v = graph_add_source(c->g, OP_const, op_shape(c, 0, 3), &attrs, "%out", (Loc){0, 0});
    c->node = graph_value(c->g, v)->def;
}

static void op_full(OpCase *c)
{
    static const char *const types[] = {"f32", "i32", "u8", "bool"};
    Type t = op_shape(c, 0, 3);
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_shape, t.dim, t.rank);
    attrs_float(&attrs, ATTR_value, (double)op_int(c, 0, 1));
    attrs_string(&attrs, ATTR_dtype, types[op_int(c, 0, 3)]);
    op_done(c, OP_full, &attrs);
}

static void op_iota(OpCase *c)
{
    Type t = op_shape(c, 1, 3);
    AttrList attrs = {0};
    if (op_coin(c))
        attrs_int(&attrs, ATTR_axis, op_int(c, 0, t.rank - 1));
    attrs_ints(&attrs, ATTR_shape, t.dim, t.rank);
    attrs_string(&attrs, ATTR_dtype, op_coin(c) ? "f32" : "i32");
    op_done(c, OP_iota, &attrs);
}

/* --- element-wise --- */

#define POINT1(name, low, high)                                                                    \
    static void op_##name(OpCase *c)                                                               \
    {                                                                                              \
        op_floats(c, op_shape(c, 0, 4), low, high);                                                \
        op_done(c, OP_##name, NULL);                                                               \
    }
#define POINT1_INT(name)                                                                           \
    static void op_##name(OpCase *c)                                                               \
    {                                                                                              \
        Type t = op_shape(c, 0, 4);                                                                \
        if (op_coin(c))                                                                            \
            op_integers(c, t, DTYPE_I32, -1000, 1000);                                             \
        else                                                                                       \
            op_normal(c, t);                                                                       \
        op_done(c, OP_##name, NULL);                                                               \
    }
POINT1_INT(neg)
POINT1_INT(abs)
POINT1_INT(sign)
POINT1_INT(relu)
POINT1(exp, -100, 80)
POINT1(log, 1e-3, 50)
POINT1(sqrt, 0, 50)
POINT1(rsqrt, 1e-3, 50)
POINT1(tanh, -6, 6)
POINT1(sigmoid, -20, 20)
POINT1(silu, -20, 20)

static void op_gelu(OpCase *c)
{
    AttrList attrs = {0};
    if (op_coin(c))
        attrs_int(&attrs, ATTR_approx, 1);
    op_floats(c, op_shape(c, 0, 4), -4, 8);
    op_done(c, OP_gelu, &attrs);
}

static void op_cast(OpCase *c)
{
    static const char *const to[] = {"f32", "i32", "u8", "bool"};
    AttrList attrs = {0};
    Type t = op_shape(c, 0, 4);
    attrs_string(&attrs, ATTR_dtype, to[op_int(c, 0, 3)]);
    switch (op_int(c, 0, 3)) {
    case 0:
        op_floats(c, t, -300, 300);
        break;
    case 1:
        op_integers(c, t, DTYPE_I32, -70000, 70000);
        break;
    case 2:
        op_integers(c, t, DTYPE_U8, 0, 255);
        break;
    default:
        op_integers(c, t, DTYPE_BOOL, 0, 1);
    }
    op_done(c, OP_cast, &attrs);
}

#define POINT2(name)                                                                               \
    static void op_##name(OpCase *c)                                                               \
    {                                                                                              \
        Type a, b;                                                                                 \
        op_pair(c, &a, &b);                                                                        \
        op_normal(c, a);                                                                           \
        op_normal(c, b);                                                                           \
        op_done(c, OP_##name, NULL);                                                               \
    }
#define POINT2_INT(name)                                                                           \
    static void op_##name(OpCase *c)                                                               \
    {                                                                                              \
        Type a, b;                                                                                 \
        bool whole = op_coin(c);                                                                   \
        op_pair(c, &a, &b);                                                                        \
        whole ? op_integers(c, a, DTYPE_I32, -4, 4) : op_normal(c, a);                             \
        whole ? op_integers(c, b, DTYPE_I32, -4, 4) : op_normal(c, b);                             \
        op_done(c, OP_##name, NULL);                                                               \
    }
POINT2_INT(add)
POINT2_INT(sub)
POINT2_INT(mul)
POINT2(div)
POINT2_INT(maximum)
POINT2_INT(minimum)
POINT2_INT(eq)
POINT2_INT(ne)
POINT2_INT(lt)
POINT2_INT(le)
POINT2_INT(gt)
POINT2_INT(ge)
POINT2(relu_grad)
POINT2(tanh_grad)
POINT2(sigmoid_grad)
POINT2(silu_grad)

static void op_gelu_grad(OpCase *c)
{
    Type a, b;
    AttrList attrs = {0};
    if (op_coin(c))
        attrs_int(&attrs, ATTR_approx, 1);
    op_pair(c, &a, &b);
    op_normal(c, a);
    op_floats(c, b, -6, 6);
    op_done(c, OP_gelu_grad, &attrs);
}

static void op_pow(OpCase *c)
{
    static const double powers[] = {0, 1, 2, 3, 0.5, -0.5, -1, -2, 1.5, 7, 2.25};
    Type a, b;
    op_pair(c, &a, &b);
    op_floats(c, a, 0.05, 4);
    if (op_coin(c)) {
        op_normal(c, b);
        op_done(c, OP_pow, NULL);
        return;
    }
    AttrList attrs = {0};
    attrs_float(&attrs, ATTR_value, powers[op_int(c, 0, 10)]);
    ValueId power =
        graph_add_source(c->g, OP_const, type_scalar(DTYPE_F32), &attrs, "%power", (Loc){0, 0});
    op_on(c, OP_pow, (const ValueId[]){c->in[0], power}, 2, NULL);
}

static void op_select(OpCase *c)
{
    Type t = op_shape(c, 0, 4);
    op_integers(c, op_coin(c) ? t : op_smaller(c, t), DTYPE_BOOL, 0, 1);
    op_normal(c, op_coin(c) ? t : op_smaller(c, t));
    op_normal(c, op_smaller(c, t));
    op_done(c, OP_select, NULL);
}

static void op_dropout(OpCase *c)
{
    AttrList attrs = {0};
    attrs_float(&attrs, ATTR_p, op_uniform(c, 0, 0.9));
    attrs_int(&attrs, ATTR_key, (int64_t)op_bits(c));
    op_normal(c, op_shape(c, 0, 4));
    op_integers(c, DIMS(4), DTYPE_I32, INT32_MIN, INT32_MAX);
    op_done(c, OP_dropout, &attrs);
}

static void op_causal_mask(OpCase *c)
{
    AttrList attrs = {0};
    if (op_coin(c))
        attrs_float(&attrs, ATTR_value, -3);
    op_normal(c, op_shape(c, 2, 4));
    op_done(c, OP_causal_mask, &attrs);
}

/* --- reductions --- */

static void op_reduction(OpCase *c, OpKind op)
{
    Type t = op_shape(c, 0, 5);
    int64_t axes[TYPE_MAX_RANK];
    int n = 0;
    AttrList attrs = {0};
    for (int i = 0; i < t.rank; i++)
        if (op_coin(c))
            axes[n++] = i;
    if (n > 0)
        attrs_ints(&attrs, ATTR_axes, axes, n);
    if (op_coin(c))
        attrs_int(&attrs, ATTR_keepdims, 1);
    if (op != OP_mean && op_int(c, 0, 3) == 0)
        op_integers(c, t, DTYPE_I32, -100, 100);
    else
        op_floats(c, t, -1, 3);
    op_done(c, op, &attrs);
}
static void op_sum(OpCase *c)
{
    op_reduction(c, OP_sum);
}
static void op_mean(OpCase *c)
{
    op_reduction(c, OP_mean);
}
static void op_reduce_max(OpCase *c)
{
    op_reduction(c, OP_reduce_max);
}
static void op_sumsq(OpCase *c)
{
    op_normal(c, op_shape(c, 0, 4));
    op_done(c, OP_sumsq, NULL);
}

static void op_any_axis(OpCase *c, AttrList *attrs, Type t)
{
    if (op_coin(c))
        attrs_int(attrs, ATTR_axis, op_int(c, 0, t.rank - 1));
}

static void op_argmax(OpCase *c)
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
static void op_softmax(OpCase *c)
{
    op_softmax_like(c, OP_softmax, 1);
}
static void op_log_softmax(OpCase *c)
{
    op_softmax_like(c, OP_log_softmax, 1);
}
static void op_softmax_grad(OpCase *c)
{
    op_softmax_like(c, OP_softmax_grad, 2);
}
static void op_log_softmax_grad(OpCase *c)
{
    op_softmax_like(c, OP_log_softmax_grad, 2);
}

/* --- matrix products --- */

static void op_matmul(OpCase *c)
{
    AttrList attrs = {0};
    Type batch = {.dtype = DTYPE_F32, .rank = (int)op_int(c, 0, 2)};
    for (int i = 0; i < batch.rank; i++)
        batch.dim[i] = op_int(c, 1, 3);
    Type a = op_coin(c) ? batch : op_smaller(c, batch),
         b = op_coin(c) ? batch : op_smaller(c, batch);
    bool ta = op_coin(c), tb = op_coin(c);
    int64_t m = op_dim(c), k = op_dim(c), n = op_dim(c);
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

static void op_linear(OpCase *c)
{
    AttrList attrs = {0};
    int64_t in = op_dim(c), out = op_dim(c), rows = op_dim(c);
    bool in_out = op_coin(c);
    if (in_out)
        attrs_int(&attrs, ATTR_in_out, 1);
    op_normal(c, op_coin(c) ? DIMS(rows, in) : DIMS(2, rows, in));
    op_normal(c, in_out ? DIMS(in, out) : DIMS(out, in));
    if (op_coin(c))
        op_normal(c, DIMS(out));
    op_done(c, OP_linear, &attrs);
}

static Type op_image(bool nhwc, int64_t n, int64_t channels, int64_t h, int64_t w)
{
    return nhwc ? DIMS(n, h, w, channels) : DIMS(n, channels, h, w);
}

static void op_two(OpCase *c, AttrList *attrs, AttrKey key, int64_t low, int64_t high,
                   int64_t *pair)
{
    pair[0] = op_int(c, low, high);
    pair[1] = op_int(c, low, high);
    attrs_ints(attrs, key, pair, 2);
}

/* Sizes of a convolution. */
typedef struct OpConv {
    AttrList attrs;
    int64_t stride[2], padding[2], dilation[2], hw[2];
    int64_t n, groups, in, out, h, w, r, s;
    bool nhwc;
} OpConv;

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

static Type op_filter(const OpConv *v)
{
    return v->nhwc ? DIMS(v->r, v->s, v->in, v->out) : DIMS(v->out, v->in, v->r, v->s);
}

static int64_t op_conv_length(const OpConv *v, int i)
{
    int64_t size = i ? v->w : v->h, k = i ? v->s : v->r;
    return (size + 2 * v->padding[i] - v->dilation[i] * (k - 1) - 1) / v->stride[i] + 1;
}

static Type op_conv_input(const OpConv *v)
{
    return op_image(v->nhwc, v->n, v->in * v->groups, v->h, v->w);
}

static Type op_conv_output(const OpConv *v)
{
    return op_image(v->nhwc, v->n, v->out, op_conv_length(v, 0), op_conv_length(v, 1));
}

static void op_conv2d(OpCase *c)
{
    OpConv v;
    op_conv_sizes(c, &v);
    op_normal(c, op_conv_input(&v));
    op_normal(c, op_filter(&v));
    if (op_coin(c))
        op_normal(c, DIMS(v.out));
    op_done(c, OP_conv2d, &v.attrs);
}

static bool op_conv_fits(const OpConv *v)
{
    return v->h + 2 * v->padding[0] > v->dilation[0] * (v->r - 1) &&
           v->w + 2 * v->padding[1] > v->dilation[1] * (v->s - 1);
}

static void op_conv2d_dgrad(OpCase *c)
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

static void op_conv2d_wgrad(OpCase *c)
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
static void op_maxpool(OpCase *c)
{
    op_pool(c, OP_maxpool);
}
static void op_avgpool(OpCase *c)
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
    ValueId x = graph_add_source(g, OP_input, p.x, NULL, "%x", (Loc){0, 0});
    NodeId n = graph_try_add(g, forward, &x, 1, &p.attrs, NULL, (Loc){0, 0}, &err);
    if (n == NODE_NONE)
        return;
    op_normal(c, *value_type(g, graph_node(g, n)->out[0]));
    if (op == OP_maxpool_grad)
        op_integers(c, p.x, DTYPE_F32, -9, 9); /* ties */
    else
        attrs_ints(&p.attrs, ATTR_hw, &p.x.dim[p.nhwc ? 1 : 2], 2);
    op_done(c, op, &p.attrs);
}
static void op_maxpool_grad(OpCase *c)
{
    op_pool_grad(c, OP_maxpool_grad, OP_maxpool);
}
static void op_avgpool_grad(OpCase *c)
{
    op_pool_grad(c, OP_avgpool_grad, OP_avgpool);
}

/* --- normalisation --- */

static Type op_channelled(OpCase *c, AttrList *attrs, int64_t *channels)
{
    Type t = op_shape(c, 2, 4);
    t.dim[0] += 2;
    int64_t axis = op_int(c, 1, t.rank - 1);
    *channels = t.dim[axis];
    if (axis != 1 || op_coin(c))
        attrs_int(attrs, ATTR_axis, axis);
    return t;
}

static void op_bn_stats(OpCase *c)
{
    AttrList attrs = {0};
    int64_t channels;
    Type t = op_channelled(c, &attrs, &channels);
    double offset = op_coin(c) ? 0 : 300;
    op_floats(c, t, offset - 2, offset + 3);
    op_done(c, OP_bn_stats, &attrs);
}

static void op_vectors(OpCase *c, int64_t n, int count)
{
    for (int i = 0; i < count; i++)
        op_normal(c, DIMS(n));
}

static void op_bn_apply(OpCase *c)
{
    AttrList attrs = {0};
    int64_t channels;
    op_normal(c, op_channelled(c, &attrs, &channels));
    op_vectors(c, channels, 1);
    op_floats(c, DIMS(channels), 0.2, 3);
    op_vectors(c, channels, 2);
    op_done(c, OP_bn_apply, &attrs);
}

static void op_bn_grad_sums(OpCase *c)
{
    AttrList attrs = {0};
    int64_t channels;
    Type t = op_channelled(c, &attrs, &channels);
    op_normal(c, t);
    op_normal(c, t);
    op_vectors(c, channels, 1);
    op_floats(c, DIMS(channels), 0.2, 3);
    op_done(c, OP_bn_grad_sums, &attrs);
}

static void op_bn_grad_x(OpCase *c)
{
    AttrList attrs = {0};
    int64_t channels;
    Type t = op_channelled(c, &attrs, &channels);
    op_normal(c, t);
    op_normal(c, t);
    op_vectors(c, channels, 1);
    op_floats(c, DIMS(channels), 0.2, 3);
    op_vectors(c, channels, 3);
    op_done(c, OP_bn_grad_x, &attrs);
}

/* A persistent tensor and its update. */
static ValueId op_persistent(OpCase *c, OpKind kind, Type t, double low, double high)
{
    ValueId v = op_floats(c, t, low, high);
    value_node(c->g, v)->op = kind;
    return v;
}

static void op_bn_running(OpCase *c)
{
    AttrList attrs = {0};
    Type t = op_shape(c, 1, 1);
    attrs_float(&attrs, ATTR_momentum, 0.1);
    attrs_float(&attrs, ATTR_scale, 1.25);
    op_persistent(c, OP_buffer, t, -3, 3);
    op_normal(c, t);
    op_done(c, OP_bn_running, &attrs);
}

static void op_layernorm(OpCase *c)
{
    Type t = op_shape(c, 1, 4);
    int affine = (int)op_int(c, 0, 2);
    double offset = op_coin(c) ? 0 : 50;
    op_floats(c, t, offset - 2, offset + 3);
    op_vectors(c, t.dim[t.rank - 1], affine);
    op_done(c, OP_layernorm, NULL);
}

static void op_layernorm_inputs(OpCase *c, int64_t *length)
{
    Type t = op_shape(c, 1, 4);
    *length = t.dim[t.rank - 1];
    op_normal(c, t);
    op_normal(c, t);
    t.rank--;
    op_floats(c, t, -1, 1);
    op_floats(c, t, 0.3, 2);
}

static void op_layernorm_grad(OpCase *c)
{
    int64_t length;
    op_layernorm_inputs(c, &length);
    op_vectors(c, length, op_coin(c));
    op_done(c, OP_layernorm_grad, NULL);
}

static void op_layernorm_grad_sums(OpCase *c)
{
    int64_t length;
    op_layernorm_inputs(c, &length);
    op_done(c, OP_layernorm_grad_sums, NULL);
}

/* --- losses --- */

static void op_labelled(OpCase *c, AttrList *attrs, bool smooth)
{
    Type t = op_shape(c, 1, 4), labels = {.dtype = DTYPE_I32};
    int64_t axis = op_coin(c) ? t.rank - 1 : op_int(c, 0, t.rank - 1);
    if (axis != t.rank - 1)
        attrs_int(attrs, ATTR_axis, axis);
    if (op_coin(c))
        attrs_int(attrs, ATTR_ignore_index, 0);
    if (smooth && op_coin(c))
        attrs_float(attrs, ATTR_smoothing, 0.1);
    for (int i = 0; i < t.rank; i++)
        if (i != axis)
            labels.dim[labels.rank++] = t.dim[i];
    op_floats(c, t, -6, 6);
    DType type = t.dim[axis] < 256 && op_coin(c) ? DTYPE_U8 : DTYPE_I32;
    op_integers(c, labels, type, 0, t.dim[axis] - 1);
}

static void op_cross_entropy(OpCase *c)
{
    AttrList attrs = {0};
    op_labelled(c, &attrs, true);
    op_done(c, OP_cross_entropy, &attrs);
}

static void op_cross_entropy_grad(OpCase *c)
{
    AttrList attrs = {0};
    op_labelled(c, &attrs, true);
    op_scalar(c, 0.5, 2);
    op_done(c, OP_cross_entropy_grad, &attrs);
}

static void op_accuracy(OpCase *c)
{
    AttrList attrs = {0};
    op_labelled(c, &attrs, false);
    op_done(c, OP_accuracy, &attrs);
}

/* --- embedding --- */

static void op_embedding(OpCase *c)
{
    int64_t rows = op_dim(c), width = op_dim(c);
    op_integers(c, op_shape(c, 0, 2), DTYPE_I32, 0, rows - 1);
    op_normal(c, DIMS(rows, width));
    op_done(c, OP_embedding, NULL);
}

static void op_embedding_grad(OpCase *c)
{
    int64_t rows = op_dim(c) + 60 * op_int(c, 0, 1), width = op_int(c, 1, 40);
    AttrList attrs = {0};
    Type ids = op_shape(c, 0, 2);
    attrs_ints(&attrs, ATTR_shape, (const int64_t[]){rows, width}, 2);
    op_integers(c, ids, DTYPE_I32, 0, rows - 1);
    ids.dim[ids.rank++] = width;
    op_normal(c, ids);
    op_done(c, OP_embedding_grad, &attrs);
}

/* --- movement --- */

static ValueId op_any_type(OpCase *c, Type t)
{
    switch (op_int(c, 0, 3)) {
    case 0:
        return op_integers(c, t, DTYPE_I32, -100000, 100000);
    case 1:
        return op_integers(c, t, op_coin(c) ? DTYPE_U8 : DTYPE_BOOL, 0, 1);
    default:
        return op_normal(c, t);
    }
}

static void op_transpose(OpCase *c)
{
    AttrList attrs = {0};
    Type t = op_shape(c, 1, 5);
    int64_t perm[TYPE_MAX_RANK];
    for (int i = 0; i < t.rank; i++) {
        int64_t k = op_int(c, 0, i);
        perm[i] = perm[k];
        perm[k] = i;
    }
    attrs_ints(&attrs, ATTR_perm, perm, t.rank);
    op_any_type(c, t);
    op_done(c, OP_transpose, &attrs);
}

static void op_broadcast(OpCase *c)
{
    AttrList attrs = {0};
    Type t = op_shape(c, 0, 4);
    attrs_ints(&attrs, ATTR_shape, t.dim, t.rank);
    op_any_type(c, op_smaller(c, t));
    op_done(c, OP_broadcast, &attrs);
}

static void op_slice(OpCase *c)
{
    AttrList attrs = {0};
    Type t = op_shape(c, 1, 4);
    int64_t start[TYPE_MAX_RANK], limit[TYPE_MAX_RANK], step[TYPE_MAX_RANK];
    for (int i = 0; i < t.rank; i++) {
        start[i] = op_coin(c) ? 0 : op_int(c, 0, t.dim[i] - 1);
        limit[i] = op_coin(c) ? t.dim[i] : op_int(c, start[i] + 1, t.dim[i]);
        step[i] = op_coin(c) ? 1 : op_int(c, 1, 3);
    }
    attrs_ints(&attrs, ATTR_start, start, t.rank);
    attrs_ints(&attrs, ATTR_limit, limit, t.rank);
    attrs_ints(&attrs, ATTR_step, step, t.rank);
    op_any_type(c, t);
    op_done(c, OP_slice, &attrs);
}

static void op_concat(OpCase *c)
{
    AttrList attrs = {0};
    Type t = op_shape(c, 1, 4);
    int64_t axis = op_int(c, 0, t.rank - 1), n = op_int(c, 1, 4);
    attrs_int(&attrs, ATTR_axis, axis);
    for (int i = 0; i < n; i++) {
        t.dim[axis] = op_int(c, 1, 20);
        op_normal(c, t);
    }
    op_done(c, OP_concat, &attrs);
}

static void op_pad(OpCase *c)
{
    AttrList attrs = {0};
    Type t = op_shape(c, 1, 4);
    int64_t lo[TYPE_MAX_RANK], hi[TYPE_MAX_RANK];
    for (int i = 0; i < t.rank; i++) {
        lo[i] = op_int(c, 0, 2);
        hi[i] = op_int(c, 0, 2);
    }
    attrs_ints(&attrs, ATTR_lo, lo, t.rank);
    attrs_ints(&attrs, ATTR_hi, hi, t.rank);
    attrs_float(&attrs, ATTR_value, 1);
    op_any_type(c, t);
    op_done(c, OP_pad, &attrs);
}

/* --- updates --- */

static void op_sgd_step(OpCase *c)
{
    AttrList attrs = {0};
    Type t = op_shape(c, 0, 3);
    bool momentum = op_coin(c);
    if (op_coin(c))
        attrs_float(&attrs, ATTR_weight_decay, 0.01);
    if (momentum)
        attrs_float(&attrs, ATTR_momentum, 0.9);
    if (momentum && op_coin(c))
        attrs_int(&attrs, ATTR_nesterov, 1);
    if (momentum && op_coin(c))
        attrs_float(&attrs, ATTR_dampening, 0.2);
    op_persistent(c, OP_param, t, -3, 3);
    op_normal(c, t);
    if (momentum)
        op_persistent(c, OP_state, t, -1, 1);
    op_scalar(c, 0.01, 0.1);
    op_scalar(c, 0.2, 1);
    op_done(c, OP_sgd_step, &attrs);
}

static void op_adam_step(OpCase *c)
{
    AttrList attrs = {0};
    Type t = op_shape(c, 0, 3);
    if (op_coin(c))
        attrs_float(&attrs, ATTR_weight_decay, 0.1);
    if (op_coin(c))
        attrs_int(&attrs, ATTR_decoupled, 1);
    attrs_float(&attrs, ATTR_beta1, 0.9);
    attrs_float(&attrs, ATTR_beta2, op_coin(c) ? 0.999 : 0.99);
    op_persistent(c, OP_param, t, -3, 3);
    op_normal(c, t);
    op_persistent(c, OP_state, t, -1, 1);
    op_persistent(c, OP_state, t, 0, 1);
    op_scalar(c, 0.001, 0.1);
    op_scalar(c, 0.2, 1);
    op_integers(c, type_scalar(DTYPE_F32), DTYPE_F32, 1, op_coin(c) ? 3 : 5000);
    op_done(c, OP_adam_step, &attrs);
}

static void op_clip_scale(OpCase *c)
{
    AttrList attrs = {0};
    attrs_float(&attrs, ATTR_max_norm, 1);
    op_scalar(c, 0, 3);
    op_done(c, OP_clip_scale, &attrs);
}

static void op_checksum(OpCase *c)
{
    op_normal(c, op_shape(c, 0, 3));
    op_done(c, OP_checksum, NULL);
}

/* --- groups --- */

/* relu(batch norm(x) + r) * mask(gelu(x)) - exp(c): statistics of channels, broadcast, two outputs.
 */
static void op_fused(OpCase *c)
{
    Graph *body = graph_new(c->pool, "body");
    AttrList axis = {0};
    Type t = op_channelled(c, &axis, &(int64_t){0}), part = op_smaller(c, t);
    int64_t a = axis.n ? axis.items[0].u.i : 1;
    Type types[] = {t, DIMS(t.dim[a]), DIMS(t.dim[a]), DIMS(t.dim[a]), DIMS(t.dim[a]), part};
    ValueId v[6];
    for (int i = 0; i < 6; i++) {
        v[i] = graph_add_source(body, OP_input, types[i], NULL, "%b", (Loc){0, 0});
        op_floats(c, types[i], i == 2 ? 0.2 : -2, 2);
    }
    Loc none = {0, 0};
    ValueId y = graph_add(body, OP_bn_apply, v, 5, &axis, NULL, none);
    ValueId e = graph_add(body, OP_exp, &v[5], 1, NULL, NULL, none);
    y = graph_add(body, OP_add, (const ValueId[]){y, e}, 2, NULL, NULL, none);
    ValueId r = graph_add(body, OP_relu, &y, 1, NULL, NULL, none);
    ValueId h = graph_add(body, OP_gelu, &v[0], 1, NULL, NULL, none);
    h = graph_add(body, OP_causal_mask, &h, 1, NULL, NULL, none);
    ValueId m = graph_add(body, OP_gt, (const ValueId[]){y, e}, 2, NULL, NULL, none);
    ValueId s = graph_add(body, OP_select, (const ValueId[]){m, r, h}, 3, NULL, NULL, none);
    graph_add_output(body, "r", r);
    graph_add_output(body, "s", s);
    c->node = graph_add_fused(c->g, body, c->in, c->n_in, "%out", none);
}

/* By OpKind; `none` rules have nothing to test. */
static OpCaseMake *const op_case_table[OP_COUNT] = {
#define CASE(name) [OP_##name] = op_##name
    CASE(const),
    CASE(full),
    CASE(iota),
    CASE(neg),
    CASE(abs),
    CASE(sign),
    CASE(exp),
    CASE(log),
    CASE(sqrt),
    CASE(rsqrt),
    CASE(tanh),
    CASE(sigmoid),
    CASE(relu),
    CASE(gelu),
    CASE(silu),
    CASE(cast),
    CASE(add),
    CASE(sub),
    CASE(mul),
    CASE(div),
    CASE(pow),
    CASE(maximum),
    CASE(minimum),
    CASE(eq),
    CASE(ne),
    CASE(lt),
    CASE(le),
    CASE(gt),
    CASE(ge),
    CASE(select),
    CASE(relu_grad),
    CASE(tanh_grad),
    CASE(sigmoid_grad),
    CASE(gelu_grad),
    CASE(silu_grad),
    CASE(dropout),
    CASE(sum),
    CASE(mean),
    CASE(reduce_max),
    CASE(sumsq),
    CASE(argmax),
    CASE(matmul),
    CASE(linear),
    CASE(conv2d),
    CASE(conv2d_dgrad),
    CASE(conv2d_wgrad),
    CASE(maxpool),
    CASE(maxpool_grad),
    CASE(avgpool),
    CASE(avgpool_grad),
    CASE(bn_stats),
    CASE(bn_apply),
    CASE(bn_grad_sums),
    CASE(bn_grad_x),
    CASE(bn_running),
    CASE(layernorm),
    CASE(layernorm_grad),
    CASE(layernorm_grad_sums),
    CASE(softmax),
    CASE(softmax_grad),
    CASE(log_softmax),
    CASE(log_softmax_grad),
    CASE(cross_entropy),
    CASE(cross_entropy_grad),
    CASE(accuracy),
    CASE(embedding),
    CASE(embedding_grad),
    CASE(causal_mask),
    CASE(transpose),
    CASE(broadcast),
    CASE(slice),
    CASE(concat),
    CASE(pad),
    CASE(sgd_step),
    CASE(adam_step),
    CASE(clip_scale),
    CASE(checksum),
    CASE(fused),
#undef CASE
};

#endif
