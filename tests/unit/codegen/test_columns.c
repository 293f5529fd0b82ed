/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Convolutions of images smaller than their weights are products of columns; those of many images
 * are not.  The first image has the same bits either way. */
#include "check.h"

#include "tests/support/run/run_kernels.h"

#include <string.h>

typedef struct Shape {
    int64_t c, k, h, kernel, stride, pad, dilation;
} Shape;

static int64_t result_size(const Shape *s)
{
    return (s->h + 2 * s->pad - s->dilation * (s->kernel - 1) - 1) / s->stride + 1;
}

static ValueId image(Graph *g, int64_t images, int64_t size, int64_t channels)
{
    AttrList none = {0};
    const int64_t dim[4] = {images, size, size, channels};
    return graph_add_source(g, OP_input, type_make(DTYPE_F32, 4, dim), &none, NULL, (Loc){0});
}

/* All but the gradient have a bias. */
static ValueId convolution(Graph *g, OpKind op, const Shape *s, int64_t images, ValueId in[3])
{
    AttrList none = {0}, attrs = {0};
    const int64_t w[4] = {s->kernel, s->kernel, s->c, s->k}, hw[2] = {s->h, s->h};
    attrs_int(&attrs, ATTR_nhwc, 1);
    attrs_ints(&attrs, ATTR_stride, (const int64_t[]){s->stride, s->stride}, 2);
    attrs_ints(&attrs, ATTR_padding, (const int64_t[]){s->pad, s->pad}, 2);
    attrs_ints(&attrs, ATTR_dilation, (const int64_t[]){s->dilation, s->dilation}, 2);
    if (op == OP_conv2d_dgrad)
        attrs_ints(&attrs, ATTR_hw, hw, 2);
    int64_t bias = op == OP_conv2d ? s->k : s->c;
    in[0] = op == OP_conv2d ? image(g, images, s->h, s->c) : image(g, images, result_size(s), s->k);
    in[1] = graph_add_source(g, OP_input, type_make(DTYPE_F32, 4, w), &none, NULL, (Loc){0});
    in[2] = graph_add_source(g, OP_input, type_make(DTYPE_F32, 1, &bias), &none, NULL, (Loc){0});
    return graph_add(g, op, in, op == OP_conv2d_dgrad ? 2 : 3, &attrs, NULL, (Loc){0});
}

/* In [-1, 1), the same whatever follows. */
static void fill(KernelRun *r, ValueId v)
{
    float *data = (float *)(void *)r->data[v];
    uint64_t seed = 7 + (uint64_t)v;
    for (int64_t i = 0; i < type_elements(value_type(r->graph, v)); i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        data[i] = (float)(seed >> 40) / (1 << 23) - 1;
    }
}

static bool has_columns(const KernelRun *r)
{
    bool has = false;
    for (size_t i = 0; i < r->lowering.calls.len; i++) {
        const char *label = r->lowering.calls.data[i].label;
        has |= strstr(label, "conv columns") || strstr(label, "conv sums");
    }
    return has;
}

/* The first image's results; NULL after a failed check. */
static float *run(Pool *pool, const Target *target, OpKind op, const Shape *s, int64_t images,
                  bool columns)
{
    Graph *g = graph_new(pool, "conv");
    ValueId in[3], out = convolution(g, op, s, images, in);
    KernelRun *r = run_new(pool, g, target);
    CHECK(r);
    if (!r)
        return NULL;
    CHECK_MSG(has_columns(r) == columns, "%s of %lld images: columns %d", op_name(op),
              (long long)images, has_columns(r));
    for (int i = 0; i < 3; i++)
        fill(r, in[i]);
    run_all(r, 3, true);
    int64_t n = type_elements(value_type(g, out)) / images;
    float *first = POOL_ARRAY(pool, (size_t)n, float);
    memcpy(first, r->data[out], (size_t)n * sizeof *first);
    run_free(r);
    return first;
}

static void compare(const Target *target, OpKind op, const Shape *s)
{
    enum { MANY = 64 };
    Pool *pool = pool_new();
    float *few = run(pool, target, op, s, 1, true), *many = run(pool, target, op, s, MANY, false);
    int64_t side = op == OP_conv2d ? result_size(s) : s->h;
    int64_t n = side * side * (op == OP_conv2d ? s->k : s->c);
    if (few && many)
        CHECK_MSG(memcmp(few, many, (size_t)n * sizeof *few) == 0,
                  "%s, %lld > %lld channels, kernel %lld, stride %lld on %s", op_name(op),
                  (long long)s->c, (long long)s->k, (long long)s->kernel, (long long)s->stride,
                  target->name);
    pool_free(pool);
}

int main(void)
{
    static const Shape shapes[] = {
        {256, 272, 6, 3, 1, 0, 1}, {256, 260, 5, 3, 1, 1, 1}, {264, 512, 9, 3, 1, 2, 2}};
    static const Shape strided = {300, 256, 7, 3, 2, 1, 1};
    static const Shape long_rows = {64, 1024, 23, 3,
                                    1,  0,    1}; /* of dy: no room for a packed copy */
    for (const char *const *name = target_names(); *name; name++) {
        const Target *target = target_find(*name);
        if (!target_runs_here(target) || strcmp(*name, "generic") == 0)
            continue;
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            compare(target, OP_conv2d, &shapes[i]);
            compare(target, OP_conv2d_dgrad, &shapes[i]);
            compare(target, OP_deconv2d, &shapes[i]);
        }
        compare(target, OP_conv2d, &strided);
        compare(target, OP_conv2d_dgrad, &long_rows);
        break;
    }
    return test_result();
}
