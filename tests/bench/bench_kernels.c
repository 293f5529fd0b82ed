/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Speed of the generated matrix and image kernels on one core, as part of the core's measured
 * multiply-add peak. Usage: bench_kernels [PART-OF-A-NAME [MARCH]].  Minimum over repetitions,
 * packing of operands included.  GB/s: every operand and the result counted once. */
#include "check.h"
#include "codegen/build/flops_peak.h"
#include "ir/winograd.h"
#include "tests/support/run/run_kernels.h"

#include <string.h>
#include <time.h>

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static ValueId input_of(Graph *g, DType dtype, int rank, const int64_t *dim)
{
    AttrList none = {0};
    return graph_add_source(g, OP_input, type_make(dtype, rank, dim), &none, NULL, (Loc){0});
}

static ValueId input(Graph *g, int rank, const int64_t *dim)
{
    return input_of(g, DTYPE_F32, rank, dim);
}

/* Processor time, so that other processes on the machine disturb little; minimum over 5 runs and
 * 0.3 seconds. */
static double best_seconds(const KernelRun *r)
{
    double best = 1e30, start = seconds();
    for (int i = 0; i < 5 || seconds() - start < 0.3; i++) {
        double from = seconds();
        run_once(r);
        double took = seconds() - from;
        best = took < best ? took : best;
    }
    return best;
}

typedef struct Bench {
    const char *filter;
    const Target *target;
    double peak;
} Bench;

static void report(const Bench *b, Graph *g, const char *name)
{
    KernelRun *r = run_new(g->pool, g, b->target);
    if (r) {
        for (size_t v = 0; v < g->values.len; v++)
            memset(r->data[v], 0, (size_t)type_bytes(&g->values.data[v].type));
        double took = best_seconds(r), gflops = graph_flops(g) / took * 1e-9, bytes = 0;
        for (size_t v = 0; v < g->values.len; v++)
            bytes += (double)type_bytes(&g->values.data[v].type);
        printf("%-42s %9.3f ms %8.1f GFLOP/s %6.1f%% %7.1f GB/s\n", name, took * 1e3, gflops,
               100 * gflops / b->peak, bytes / took * 1e-9);
        fflush(stdout);
    }
    run_free(r);
}

static bool wanted(const Bench *b, const char *name)
{
    return !b->filter || strstr(name, b->filter);
}

static void bench_matmul(const Bench *b, int64_t batch, int64_t m, int64_t n, int64_t k, bool ta,
                         bool tb)
{
    char name[64];
    snprintf(name, sizeof name, "matmul %s%s %lldx%lldx%lldx%lld", ta ? "T" : "N", tb ? "T" : "N",
             (long long)batch, (long long)m, (long long)n, (long long)k);
    if (!wanted(b, name))
        return;
    Pool *pool = pool_new();
    Graph *g = graph_new(pool, "bench");
    int64_t a[3] = {batch, ta ? k : m, ta ? m : k}, w[3] = {batch, tb ? n : k, tb ? k : n};
    AttrList attrs = {0};
    if (ta)
        attrs_int(&attrs, ATTR_ta, 1);
    if (tb)
        attrs_int(&attrs, ATTR_tb, 1);
    int drop = batch == 1;
    ValueId in[2] = {input(g, 3 - drop, a + drop), input(g, 3 - drop, w + drop)};
    graph_add(g, OP_matmul, in, 2, &attrs, NULL, (Loc){0});
    report(b, g, name);
    pool_free(pool);
}

/* A product of bf16 by pairs (ir/product.h): of activations and weights, whose result is bf16, or a
 * gradient of weights. */
static void bench_pairs(const Bench *b, int64_t m, int64_t n, int64_t k, bool ta, bool tb)
{
    char name[64];
    snprintf(name, sizeof name, "pairs %s%s %lldx%lldx%lld", ta ? "T" : "N", tb ? "T" : "N",
             (long long)m, (long long)n, (long long)k);
    if (!wanted(b, name))
        return;
    Pool *pool = pool_new();
    Graph *g = graph_new(pool, "bench");
    int64_t a[2] = {ta ? k : m, ta ? m : k}, w[2] = {tb ? n : k, tb ? k : n};
    AttrList attrs = {0};
    attrs_int(&attrs, ATTR_pairs, 1);
    attrs_string(&attrs, ATTR_dtype, dtype_name(ta ? DTYPE_F32 : DTYPE_BF16));
    if (ta)
        attrs_int(&attrs, ATTR_ta, 1);
    if (tb)
        attrs_int(&attrs, ATTR_tb, 1);
    ValueId in[2] = {input_of(g, DTYPE_BF16, 2, a), input_of(g, ta ? DTYPE_BF16 : DTYPE_F32, 2, w)};
    graph_add(g, OP_matmul, in, 2, &attrs, NULL, (Loc){0});
    report(b, g, name);
    pool_free(pool);
}

/* Square cases leave out what is 0: w = h, s = r, stride[1] = stride[0] and so on; groups 0 is 1.
 */
typedef struct ConvCase {
    int64_t n, c, h, k, r, stride, pad, dilation, groups;
    int64_t w, s, stride_w, pad_w;
    int winograd; /* m of Winograd's form; 0: the direct one */
} ConvCase;

static int64_t or_else(int64_t v, int64_t other)
{
    return v ? v : other;
}

/* From a row of conv_cases: square where the row ends early. */
static ConvCase conv_case(const int64_t *v)
{
    bool square = !v[10];
    ConvCase q = {.n = v[0],
                  .c = v[1],
                  .h = v[2],
                  .k = v[3],
                  .r = v[4],
                  .stride = v[5],
                  .pad = v[6],
                  .dilation = or_else(v[7], 1),
                  .groups = or_else(v[8], 1),
                  .w = or_else(v[9], v[2]),
                  .s = or_else(v[10], v[4]),
                  .stride_w = or_else(v[11], v[5]),
                  .pad_w = square ? v[6] : v[12]};
    return q;
}

static void conv_name(char *name, size_t size, OpKind op, const ConvCase *q)
{
    int n = snprintf(name, size, "%s %lld %lldc %lldx%lld %lldk %lldx%lld/%lld", op_name(op),
                     (long long)q->n, (long long)q->c, (long long)q->h, (long long)q->w,
                     (long long)q->k, (long long)q->r, (long long)q->s, (long long)q->stride);
    if (q->stride_w != q->stride)
        n += snprintf(name + n, size - (size_t)n, ",%lld", (long long)q->stride_w);
    if (q->dilation > 1)
        n += snprintf(name + n, size - (size_t)n, " d%lld", (long long)q->dilation);
    if (q->groups > 1)
        n += snprintf(name + n, size - (size_t)n, " g%lld", (long long)q->groups);
    if (q->winograd)
        snprintf(name + n, size - (size_t)n, " F(%d,3)", q->winograd);
}

/* The list points into pairs. */
static AttrList conv_attrs(OpKind op, const ConvCase *q, int64_t pairs[4][2])
{
    const int64_t values[4][2] = {
        {q->stride, q->stride_w},
        {q->pad, q->pad_w},
        {q->dilation, q->dilation},
        {op == OP_conv2d_dgrad ? q->h : q->r, op == OP_conv2d_dgrad ? q->w : q->s}};
    AttrList attrs = {0};
    memcpy(pairs, values, sizeof values);
    attrs_int(&attrs, ATTR_nhwc, 1);
    attrs_int(&attrs, ATTR_groups, q->groups);
    attrs_ints(&attrs, ATTR_stride, pairs[0], 2);
    attrs_ints(&attrs, ATTR_padding, pairs[1], 2);
    attrs_ints(&attrs, ATTR_dilation, pairs[2], 2);
    if (op == OP_conv2d_dgrad || op == OP_conv2d_wgrad)
        attrs_ints(&attrs, ATTR_hw, pairs[3], 2);
    if (q->winograd)
        attrs_int(&attrs, ATTR_winograd, q->winograd);
    return attrs;
}

/* m of Winograd's form, where a model that asks for it gets it; else 0. */
static int bench_conv_form(const Bench *b, OpKind op, const ConvCase *q)
{
    char name[96];
    conv_name(name, sizeof name, op, q);
    Pool *pool = pool_new();
    Graph *g = graph_new(pool, "bench");
    int64_t oh = (q->h + 2 * q->pad - q->dilation * (q->r - 1) - 1) / q->stride + 1;
    int64_t ow = (q->w + 2 * q->pad_w - q->dilation * (q->s - 1) - 1) / q->stride_w + 1;
    int64_t x[4] = {q->n, q->h, q->w, q->c}, y[4] = {q->n, oh, ow, q->k};
    int64_t w[4] = {q->r, q->s, q->c / q->groups, q->k};
    int64_t pairs[4][2];
    AttrList attrs = conv_attrs(op, q, pairs);
    ValueId in[2] = {input(g, 4, op == OP_conv2d_dgrad ? y : x),
                     op == OP_conv2d_wgrad ? input(g, 4, y) : input(g, 4, w)};
    ValueId out = graph_add(g, op, in, 2, &attrs, NULL, (Loc){0});
    int m = winograd_choice(g, value_node(g, out));
    if (wanted(b, name))
        report(b, g, name);
    pool_free(pool);
    return m;
}

static void bench_conv(const Bench *b, OpKind op, const ConvCase *q)
{
    ConvCase form = *q;
    form.winograd = bench_conv_form(b, op, q);
    if (form.winograd)
        bench_conv_form(b, op, &form);
}

/* c channels to k; h and w are the input's. */
static void bench_deconv(const Bench *b, const ConvCase *q)
{
    char name[96];
    conv_name(name, sizeof name, OP_deconv2d, q);
    if (!wanted(b, name))
        return;
    Pool *pool = pool_new();
    Graph *g = graph_new(pool, "bench");
    int64_t x[4] = {q->n, q->h, q->w, q->c}, w[4] = {q->r, q->s, q->k / q->groups, q->c};
    int64_t pairs[4][2];
    AttrList attrs = conv_attrs(OP_deconv2d, q, pairs);
    ValueId in[3] = {input(g, 4, x), input(g, 4, w), input(g, 1, &q->k)};
    graph_add(g, OP_deconv2d, in, 3, &attrs, NULL, (Loc){0});
    report(b, g, name);
    pool_free(pool);
}

/* The cost rules count 10 operations a power: the GB/s say more. */
static void bench_lrn(const Bench *b, OpKind op, int64_t n, int64_t size, int64_t c)
{
    char name[64];
    snprintf(name, sizeof name, "%s %lld %lldc %lldx%lld", op_name(op), (long long)n, (long long)c,
             (long long)size, (long long)size);
    if (!wanted(b, name))
        return;
    Pool *pool = pool_new();
    Graph *g = graph_new(pool, "bench");
    int64_t x[4] = {n, size, size, c};
    AttrList attrs = {0};
    attrs_int(&attrs, ATTR_axis, 3);
    attrs_int(&attrs, ATTR_window, 5);
    attrs_float(&attrs, ATTR_alpha, 2e-5);
    ValueId in[2] = {input(g, 4, x), VALUE_NONE};
    if (op == OP_lrn_grad)
        in[1] = input(g, 4, x);
    graph_add(g, op, in, op == OP_lrn_grad ? 2 : 1, &attrs, NULL, (Loc){0});
    report(b, g, name);
    pool_free(pool);
}

/* n, c, h, k, r, stride, pad, dilation, groups, w, s, stride_w, pad_w */
static const int64_t conv_cases[][13] = {
    /* ResNet */
    {8, 64, 56, 64, 3, 1, 1},
    {8, 128, 28, 128, 3, 1, 1},
    {8, 256, 14, 256, 3, 1, 1},
    {8, 512, 7, 512, 3, 1, 1},
    {8, 64, 56, 128, 3, 2, 1},
    {8, 64, 56, 128, 1, 2, 0},
    {16, 512, 2, 512, 3, 1, 1},
    {8, 64, 56, 256, 1, 1, 0},
    {8, 128, 56, 32, 3, 1, 1}, /* DenseNet */
    {8, 128, 14, 32, 3, 1, 1},
    {64, 1, 28, 32, 3, 1, 1},
    /* stems: ResNet, Inception and PSPNet, AlexNet */
    {8, 3, 224, 64, 7, 2, 3},
    {8, 3, 299, 32, 3, 2, 0},
    {8, 3, 227, 96, 11, 4, 0},
    /* depthwise: MobileNetV2; NASNet, AmoebaNet, DARTS */
    {8, 96, 112, 96, 3, 2, 1, 1, 96},
    {8, 144, 56, 144, 3, 1, 1, 1, 144},
    {64, 36, 32, 36, 3, 1, 1, 1, 36},
    {64, 36, 32, 36, 5, 1, 2, 1, 36},
    {64, 36, 32, 36, 7, 1, 3, 1, 36},
    {64, 36, 32, 36, 3, 1, 2, 2, 36},
    {64, 36, 32, 36, 5, 1, 4, 2, 36},
    {64, 72, 32, 72, 3, 2, 1, 1, 72},
    {64, 72, 32, 72, 5, 2, 2, 1, 72},
    {64, 72, 16, 72, 3, 1, 1, 1, 72},
    {64, 72, 16, 72, 5, 1, 2, 1, 72},
    {64, 108, 16, 108, 7, 1, 3, 1, 108},
    {64, 144, 8, 144, 3, 1, 1, 1, 144},
    {64, 144, 8, 144, 5, 1, 2, 1, 144},
    {8, 256, 56, 256, 3, 1, 1, 1, 256},
    /* groups: AlexNet's second convolution and its dense equivalent, ResNeXt */
    {8, 96, 27, 256, 5, 1, 2, 1, 2},
    {8, 48, 27, 128, 5, 1, 2},
    {8, 384, 13, 384, 3, 1, 1, 1, 2},
    {8, 128, 56, 128, 3, 1, 1, 1, 32},
    {8, 256, 28, 256, 3, 1, 1, 1, 32},
    {8, 512, 14, 512, 3, 1, 1, 1, 32},
    {8, 1024, 7, 1024, 3, 1, 1, 1, 32},
    /* dilated: PSPNet */
    {1, 256, 90, 256, 3, 1, 1},
    {1, 256, 90, 256, 3, 1, 2, 2},
    {1, 512, 90, 512, 3, 1, 4, 4},
    /* rectangular: Inception, AmoebaNet */
    {8, 128, 17, 128, 3, 1, 1},
    {8, 128, 17, 128, 1, 1, 0, 1, 1, 17, 7, 1, 3},
    {8, 192, 17, 192, 7, 1, 3, 1, 1, 17, 1, 1, 0},
    {8, 384, 8, 384, 1, 1, 0, 1, 1, 8, 3, 1, 1},
    {8, 384, 8, 384, 3, 1, 1, 1, 1, 8, 1, 1, 0},
    {8, 48, 35, 64, 5, 1, 2},
    {32, 36, 32, 36, 1, 1, 0, 1, 1, 32, 7, 2, 3},
    {32, 36, 32, 36, 7, 2, 3, 1, 1, 16, 1, 1, 0},
    /* VGG */
    {4, 64, 224, 64, 3, 1, 1},
    {4, 128, 112, 128, 3, 1, 1},
    {4, 256, 56, 256, 3, 1, 1},
    {4, 512, 28, 512, 3, 1, 1},
    /* U-Net */
    {1, 64, 570, 64, 3, 1, 0},
    {1, 3, 572, 64, 3, 1, 0},
};

/* Pooling (kernel > 0; its average leaves padding out) and resampling of h x h to `to` x `to`. */
typedef struct ImageCase {
    OpKind op, grad;
    int64_t n, c, h, kernel, stride, pad, to;
    AttrKey flag; /* resize: nearest or align_corners; else ATTR_nhwc */
} ImageCase;

static const ImageCase image_cases[] = {
    /* NAS cells */
    {OP_maxpool, OP_maxpool_grad, 64, 36, 32, 3, 1, 1, 32, ATTR_nhwc},
    {OP_maxpool, OP_maxpool_grad, 64, 72, 16, 3, 1, 1, 16, ATTR_nhwc},
    {OP_maxpool, OP_maxpool_grad, 64, 144, 8, 3, 1, 1, 8, ATTR_nhwc},
    {OP_maxpool, OP_maxpool_grad, 64, 72, 32, 3, 2, 1, 16, ATTR_nhwc},
    {OP_avgpool, OP_avgpool_grad, 64, 36, 32, 3, 1, 1, 32, ATTR_nhwc},
    {OP_avgpool, OP_avgpool_grad, 64, 72, 16, 3, 1, 1, 16, ATTR_nhwc},
    {OP_avgpool, OP_avgpool_grad, 64, 144, 8, 3, 1, 1, 8, ATTR_nhwc},
    /* ResNet's stem, PSPNet's pyramid and result, U-Net's enlargement */
    {OP_maxpool, OP_maxpool_grad, 8, 64, 112, 3, 2, 1, 56, ATTR_nhwc},
    {OP_avgpool, OP_avgpool_grad, 2, 2048, 90, 30, 30, 0, 3, ATTR_nhwc},
    {OP_adaptive_avgpool, OP_adaptive_avgpool_grad, 2, 2048, 90, 0, 0, 0, 7, ATTR_nhwc},
    {OP_resize, OP_resize_grad, 2, 512, 6, 0, 0, 0, 90, ATTR_align_corners},
    {OP_resize, OP_resize_grad, 2, 512, 1, 0, 0, 0, 90, ATTR_align_corners},
    {OP_resize, OP_resize_grad, 2, 19, 90, 0, 0, 0, 713, ATTR_align_corners},
    {OP_resize, OP_resize_grad, 2, 3, 713, 0, 0, 0, 224, ATTR_nhwc},
    {OP_resize, OP_resize_grad, 2, 128, 64, 0, 0, 0, 128, ATTR_nearest},
};

static void bench_image(const Bench *b, const ImageCase *q, bool gradient)
{
    char name[96];
    OpKind op = gradient ? q->grad : q->op;
    snprintf(name, sizeof name, "%s %lld %lldc %lld->%lld %lldx%lld", op_name(op), (long long)q->n,
             (long long)q->c, (long long)q->h, (long long)q->to, (long long)q->kernel,
             (long long)q->kernel);
    if (!wanted(b, name))
        return;
    Pool *pool = pool_new();
    Graph *g = graph_new(pool, "bench");
    int64_t x[4] = {q->n, q->h, q->h, q->c}, y[4] = {q->n, q->to, q->to, q->c};
    const int64_t kernel[] = {q->kernel, q->kernel}, stride[] = {q->stride, q->stride};
    const int64_t padding[] = {q->pad, q->pad};
    AttrList attrs = {0};
    attrs_int(&attrs, ATTR_nhwc, 1);
    attrs_int(&attrs, q->flag, 1);
    if (q->kernel) {
        attrs_ints(&attrs, ATTR_kernel, kernel, 2);
        attrs_ints(&attrs, ATTR_stride, stride, 2);
        attrs_ints(&attrs, ATTR_padding, padding, 2);
    }
    attrs_ints(&attrs, ATTR_hw, gradient ? x + 1 : y + 1, 2);
    ValueId in[2] = {input(g, 4, gradient ? y : x)};
    if (op == OP_maxpool_grad)
        in[1] = input(g, 4, x);
    graph_add(g, op, in, op == OP_maxpool_grad ? 2 : 1, &attrs, NULL, (Loc){0});
    report(b, g, name);
    pool_free(pool);
}

static const int64_t deconv_cases[][13] = {
    /* U-Net */
    {1, 1024, 28, 512, 2, 2, 0},
    {1, 512, 52, 256, 2, 2, 0},
    {1, 256, 100, 128, 2, 2, 0},
    {1, 128, 196, 64, 2, 2, 0},
    {8, 128, 56, 64, 2, 2, 0},
    /* DCGAN, FCN */
    {16, 512, 8, 256, 4, 2, 1},
    {16, 256, 16, 128, 4, 2, 1},
    {16, 128, 32, 3, 4, 2, 1},
    {1, 256, 28, 256, 3, 1, 1},
};

/* Bits of c channels of `all`: where they lie, or of a copy of them. */
static void bench_mask(const Bench *b, int64_t n, int64_t h, int64_t c, int64_t all, OpKind piece)
{
    char name[96];
    snprintf(name, sizeof name, "relu_mask %lld %lldc of %lld %lld %s", (long long)n, (long long)c,
             (long long)all, (long long)h, c < all ? op_name(piece) : "");
    if (!wanted(b, name))
        return;
    Pool *pool = pool_new();
    Graph *g = graph_new(pool, "bench");
    int64_t dim[] = {n, h, h, all}, start[] = {0, 0, 0, all - c}, step[] = {1, 1, 1, 1};
    ValueId x = input(g, 4, dim);
    AttrList attrs = {0}, none = {0};
    attrs_ints(&attrs, ATTR_start, start, 4);
    attrs_ints(&attrs, ATTR_limit, dim, 4);
    attrs_ints(&attrs, ATTR_step, step, 4);
    if (c < all)
        x = graph_add(g, piece, &x, 1, &attrs, NULL, (Loc){0});
    graph_add(g, OP_relu_mask, &x, 1, &none, NULL, (Loc){0});
    report(b, g, name);
    pool_free(pool);
}

/* GoogLeNet's and Inception-v3's concatenations. */
static void bench_masks(const Bench *b)
{
    static const int64_t cases[][4] = {
        {4, 28, 64, 256},  {32, 28, 128, 480}, {32, 14, 208, 512},
        {32, 14, 48, 512}, {32, 35, 96, 288},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t *q = cases[i];
        bench_mask(b, q[0], q[1], q[2], q[2], OP_subview);
        bench_mask(b, q[0], q[1], q[2], q[3], OP_subview);
        bench_mask(b, q[0], q[1], q[2], q[3], OP_slice);
    }
}

/* Of heads that lie apart, without dropout; of chargpt, GPT-2, ViT-S and BERT. */
typedef struct AttentionCase {
    int64_t heads, rows, width;
    bool causal;
} AttentionCase;

static const AttentionCase attention_cases[] = {
    {48, 64, 32, true},   {24, 256, 64, true},  {12, 1024, 64, true},
    {48, 197, 64, false}, {24, 128, 64, false}, {24, 512, 64, false},
};

static void bench_attention(const Bench *b, const AttentionCase *q, bool gradient)
{
    char name[96];
    OpKind op = gradient ? OP_attention_grad : OP_attention;
    snprintf(name, sizeof name, "%s %lldx%lldx%lld%s", op_name(op), (long long)q->heads,
             (long long)q->rows, (long long)q->width, q->causal ? " causal" : "");
    if (!wanted(b, name))
        return;
    Pool *pool = pool_new();
    Graph *g = graph_new(pool, "bench");
    const int64_t dim[] = {q->heads, q->rows, q->width};
    AttrList attrs = {0};
    attrs_float(&attrs, ATTR_scale, 0.125);
    if (q->causal)
        attrs_int(&attrs, ATTR_causal, 1);
    ValueId in[6];
    for (int i = 0; i < 6; i++)
        in[i] = input(g, i < 4 ? 3 : 2, dim);
    graph_add(g, op, in + !gradient, gradient ? 6 : 3, &attrs, NULL, (Loc){0});
    report(b, g, name);
    pool_free(pool);
}

static void bench_all(const Bench *b)
{
    bench_matmul(b, 1, 1024, 1024, 1024, false, false);
    bench_matmul(b, 1, 1024, 1024, 1024, false, true);
    bench_matmul(b, 1, 1024, 1024, 1024, true, false);
    bench_matmul(b, 1, 256, 1024, 784, false, true);
    bench_matmul(b, 1, 784, 1024, 256, true, false);
    bench_matmul(b, 1, 256, 1024, 1024, false, true);
    bench_matmul(b, 1, 768, 128, 512, false, true);  /* chargpt */
    bench_matmul(b, 1, 512, 3072, 768, false, true); /* GPT-2 */
    bench_matmul(b, 1, 2304, 768, 512, true, false);
    bench_matmul(b, 1, 1576, 1536, 384, false, true); /* ViT-S */
    bench_matmul(b, 1, 10000, 650, 700, true, false); /* PTB-medium's LSTM */
    bench_matmul(b, 1, 6272, 128, 512, false, true);
    bench_matmul(b, 1, 192, 32, 6272, true, false);
    bench_matmul(b, 1, 25088, 64, 256, false, false);
    bench_matmul(b, 1, 256, 64, 25088, true, false);
    bench_matmul(b, 1, 64, 256, 25088, true, false);
    bench_matmul(b, 1, 25088, 64, 256, false, true);
    bench_matmul(b, 1, 25088, 256, 64, false, false);
    bench_matmul(b, 1, 25088, 256, 64, false, true);
    bench_matmul(b, 1, 6272, 512, 128, false, true);
    bench_matmul(b, 1, 128, 512, 6272, true, false);
    bench_matmul(b, 1, 1568, 256, 1024, false, true);
    bench_matmul(b, 1, 1568, 1024, 256, false, true);
    bench_matmul(b, 1, 1024, 256, 1568, true, false);
    bench_matmul(b, 1, 100352, 96, 16, false, false);
    bench_matmul(b, 1, 100352, 16, 96, false, true);
    bench_matmul(b, 1, 16, 96, 100352, true, false);
    bench_matmul(b, 1, 20, 2600, 650, false, true);
    bench_matmul(b, 1, 20, 650, 2600, false, false);
    bench_matmul(b, 1, 2600, 650, 20, true, false);
    bench_matmul(b, 1, 384, 1536, 1576, true, false);
    bench_matmul(b, 1, 384, 384, 1576, true, false);
    bench_matmul(b, 1, 10, 100, 3136, false, false);
    bench_matmul(b, 1, 10, 3136, 100, false, false);
    bench_matmul(b, 1, 10, 3136, 100, true, false);
    bench_matmul(b, 1, 14, 1000, 512, false, false);
    bench_matmul(b, 1, 8, 4096, 4096, false, false);
    bench_matmul(b, 128, 128, 128, 64, false, true);
    bench_matmul(b, 128, 128, 64, 128, false, false);
    bench_matmul(b, 1, 1024, 256, 256, false, true);
    bench_matmul(b, 1, 16, 1000, 512, false, true);
    /* GPT-2's layers and head, 2 x 256 tokens: forward, gradients of the input and of the weight */
    static const int64_t layers[][2] = {
        {2304, 768}, {768, 768}, {3072, 768}, {768, 3072}, {50257, 768}};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        int64_t n = layers[i][0], k = layers[i][1];
        bench_matmul(b, 1, 512, n, k, false, true);
        bench_matmul(b, 1, 512, k, n, false, false);
        bench_matmul(b, 1, n, k, 512, true, false);
        bench_pairs(b, 512, n, k, false, true);
        bench_pairs(b, 512, k, n, false, false);
        bench_pairs(b, n, k, 512, true, false);
    }
    for (size_t i = 0; i < sizeof conv_cases / sizeof *conv_cases; i++) {
        ConvCase q = conv_case(conv_cases[i]);
        bench_conv(b, OP_conv2d, &q);
        bench_conv(b, OP_conv2d_dgrad, &q);
        bench_conv(b, OP_conv2d_wgrad, &q);
    }
    for (size_t i = 0; i < sizeof image_cases / sizeof *image_cases; i++) {
        bench_image(b, &image_cases[i], false);
        bench_image(b, &image_cases[i], true);
    }
    for (size_t i = 0; i < sizeof deconv_cases / sizeof *deconv_cases; i++) {
        ConvCase q = conv_case(deconv_cases[i]);
        bench_deconv(b, &q);
    }
    for (size_t i = 0; i < sizeof attention_cases / sizeof *attention_cases; i++) {
        bench_attention(b, &attention_cases[i], false);
        bench_attention(b, &attention_cases[i], true);
    }
    bench_masks(b);
    bench_lrn(b, OP_lrn, 4, 56, 192);
    bench_lrn(b, OP_lrn_grad, 4, 56, 192);
}

int main(int argc, char **argv)
{
    Pool *pool = pool_new();
    Bench b = {argc > 1 && *argv[1] ? argv[1] : NULL, target_find(argc > 2 ? argv[2] : NULL), 0};
    if (!b.target || !target_runs_here(b.target)) {
        fprintf(stderr, "no such target, or this machine cannot run it\n");
        return 1;
    }
    const char *error = "";
    b.peak = codegen_measure_peak_gflops(pool, b.target, &error);
    if (b.peak <= 0) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    printf("%s: multiply-add peak of one core %.1f GFLOP/s\n", b.target->name, b.peak);
    bench_all(&b);
    pool_free(pool);
    return test_result();
}
