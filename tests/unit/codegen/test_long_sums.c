/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rounding errors of sums over 16,384 positive terms.  One chain of additions in f32 is off by some
 * 2e-6; sums in blocks are ten times better, and that is what PyTorch's libraries do.  Sums of 256
 * terms in chunks of 4 show how the chunks are joined: one after the other in f32 they are off by
 * 1.2e-7, with compensation by little more than the rounding of the result. */
#include "check.h"
#include "ir/eval.h"

#include "tests/support/run/run_kernels.h"

#include <math.h>

enum { TERMS = 16384, SIDE = 64 };

static ValueId input(Graph *g, int rank, const int64_t *dim)
{
    AttrList none = {0};
    return graph_add_source(g, OP_input, type_make(DTYPE_F32, rank, dim), &none, NULL, (Loc){0});
}

/* Numbers in [0, 1) with 20 bits, the same for both. */
static void fill(Pool *pool, KernelRun *r, EvalState *s, ValueId v)
{
    int64_t count = type_elements(value_type(r->graph, v));
    double *exact = POOL_ARRAY(pool, (size_t)count, double);
    float *data = (float *)(void *)r->data[v];
    uint64_t seed = 99 + (uint64_t)v;
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        exact[i] = (double)(seed >> 44) / (1 << 20);
        data[i] = (float)exact[i];
    }
    eval_set(s, v, exact);
}

/* Norm of the errors against the norm of the result. */
static double error_of(const KernelRun *r, const EvalState *s, ValueId v)
{
    const float *got = (const float *)(const void *)r->data[v];
    const double *exact = eval_get(s, v);
    double error = 0, size = 0;
    for (int64_t i = 0; i < type_elements(value_type(r->graph, v)); i++) {
        error += ((double)got[i] - exact[i]) * ((double)got[i] - exact[i]);
        size += exact[i] * exact[i];
    }
    return sqrt(error / size);
}

/* bound: of the error of output `which`. */
static void check(const char *name, Graph *g, OpKind op, const ValueId *in, int n_in,
                  const AttrList *attrs, int which, double bound)
{
    ValueId first = graph_add(g, op, in, n_in, attrs, NULL, (Loc){0});
    ValueId out = value_node(g, first)->out[which];
    KernelRun *r = run_new(g->pool, g, target_find(NULL));
    CHECK(r);
    if (r) {
        EvalState *s = eval_new(g->pool, g);
        for (int i = 0; i < n_in; i++)
            fill(g->pool, r, s, in[i]);
        eval_run(s, false);
        run_all(r, 1000000, false);
        double error = error_of(r, s, out);
        CHECK_MSG(error < bound, "%s: the error is %.1e", name, error);
    }
    run_free(r);
    pool_free(g->pool);
}

static void check_blocks(void)
{
    const double bound = 6e-7;
    Graph *g = graph_new(pool_new(), "matmul");
    AttrList none = {0}, image = {0};
    ValueId matrices[2] = {input(g, 2, (const int64_t[]){16, TERMS}),
                           input(g, 2, (const int64_t[]){TERMS, 32})};
    check("matmul", g, OP_matmul, matrices, 2, &none, 0, bound);
    g = graph_new(pool_new(), "wgrad");
    attrs_int(&image, ATTR_nhwc, 1);
    attrs_ints(&image, ATTR_hw, (const int64_t[]){1, 1}, 2);
    const int64_t shape[4] = {TERMS / SIDE / SIDE, SIDE, SIDE, 32};
    ValueId images[2] = {input(g, 4, shape), input(g, 4, shape)};
    check("weight gradient", g, OP_conv2d_wgrad, images, 2, &image, 0, bound);
}

/* Places of a kernel. */
static void check_places(void)
{
    enum { PLACES = 5, CHANNELS = TERMS / PLACES / PLACES + 1 };
    const double bound = 6e-7;
    Graph *g = graph_new(pool_new(), "conv");
    AttrList image = {0};
    attrs_int(&image, ATTR_nhwc, 1);
    ValueId in[2] = {input(g, 4, (const int64_t[]){1, 8, 8, CHANNELS}),
                     input(g, 4, (const int64_t[]){PLACES, PLACES, CHANNELS, 32})};
    check("convolution", g, OP_conv2d, in, 2, &image, 0, bound);
    g = graph_new(pool_new(), "dgrad");
    attrs_ints(&image, ATTR_hw, (const int64_t[]){8, 8}, 2);
    ValueId grad[2] = {input(g, 4, (const int64_t[]){1, 4, 4, CHANNELS}),
                       input(g, 4, (const int64_t[]){PLACES, PLACES, 32, CHANNELS})};
    check("data gradient", g, OP_conv2d_dgrad, grad, 2, &image, 0, bound);
}

static void check_joins(void)
{
    enum { CHANNELS = 512 };
    const double bound = 6e-8;
    Graph *g = graph_new(pool_new(), "sum");
    AttrList axis = {0}, image = {0};
    attrs_ints(&axis, ATTR_axes, (const int64_t[]){0}, 1);
    ValueId rows = input(g, 2, (const int64_t[]){256, CHANNELS});
    check("sum", g, OP_sum, &rows, 1, &axis, 0, bound);
    g = graph_new(pool_new(), "batch normalization");
    attrs_int(&image, ATTR_axis, 3);
    attrs_float(&image, ATTR_eps, 1e-5);
    const int64_t shape[4] = {4, 8, 8, CHANNELS}, channels = CHANNELS;
    ValueId in[4] = {input(g, 4, shape), input(g, 4, shape), input(g, 1, &channels),
                     input(g, 1, &channels)};
    check("gradient of a bias", g, OP_bn_grad_sums, in, 4, &image, 1, bound);
}

int main(void)
{
    check_blocks();
    check_places();
    check_joins();
    return test_result();
}
