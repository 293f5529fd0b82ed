/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Convolutions and their gradients in Winograd's form, on every target of this host, against the
 * reference evaluator, within the bounds that docs/cpu.md states; with the same bits task by task,
 * and on every target that has fused multiply-adds.  SCRIMP_TARGETS: of how many targets. */
#include "check.h"
#include "ir/eval.h"
#include "ir/winograd.h"
#include "tests/support/run/run_kernels.h"
#include "tests/support/sample.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the root mean square of the errors to that of the results. */
static const double BOUND_OF_4 = 2.5e-6, BOUND_OF_2 = 1e-6;

typedef struct Case {
    int64_t n, c, h, w, k, pad[2];
    bool bias, bf16;
} Case;

static uint64_t seed = 1;

/* From -1 to 1. */
static float number(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(seed >> 11) * 0x1p-52 - 1);
}

static ValueId input(Graph *g, DType dtype, int rank, const int64_t *dim)
{
    Type t = type_make(dtype, rank, dim);
    return graph_add_source(g, OP_input, t, NULL, NULL, (Loc){0});
}

static ValueId build(Graph *g, const Case *q, OpKind op, int m)
{
    int64_t oh = q->h + 2 * q->pad[0] - 2, ow = q->w + 2 * q->pad[1] - 2;
    const int64_t x[4] = {q->n, q->h, q->w, q->c}, y[4] = {q->n, oh, ow, q->k};
    const int64_t w[4] = {3, 3, q->c, q->k};
    const int64_t size[2] = {q->h, q->w}, kernel[2] = {3, 3};
    DType image = q->bf16 ? DTYPE_BF16 : DTYPE_F32;
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_padding, q->pad, 2);
    attrs_int(&attrs, ATTR_nhwc, 1);
    attrs_int(&attrs, ATTR_winograd, m);
    if (op != OP_conv2d)
        attrs_ints(&attrs, ATTR_hw, op == OP_conv2d_dgrad ? size : kernel, 2);
    if (op == OP_conv2d_dgrad && q->bf16)
        attrs_string(&attrs, ATTR_dtype, "f32");
    if (op == OP_conv2d && q->bf16)
        attrs_string(&attrs, ATTR_dtype, "f32");
    ValueId in[3] = {input(g, image, 4, op == OP_conv2d_dgrad ? y : x),
                     op == OP_conv2d_wgrad ? input(g, image, 4, y) : input(g, DTYPE_F32, 4, w)};
    int n_in = 2;
    if (op == OP_conv2d && q->bias)
        in[n_in++] = input(g, DTYPE_F32, 1, &q->k);
    return graph_add(g, op, in, n_in, &attrs, NULL, (Loc){0});
}

static void fill(const Graph *g, KernelRun *r, EvalState *s)
{
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (n->op != OP_input)
            continue;
        const Type *t = value_type(g, n->out[0]);
        double *exact = POOL_ARRAY(r->pool, (size_t)type_elements(t), double);
        for (int64_t k = 0; k < type_elements(t); k++) {
            float x = number();
            if (t->dtype == DTYPE_BF16) {
                x = (float)eval_round_bf16((double)x);
                memcpy(r->data[n->out[0]] + 2 * k, (char *)&x + 2, 2);
            } else {
                memcpy(r->data[n->out[0]] + 4 * k, &x, 4);
            }
            exact[k] = (double)x;
        }
        eval_set(s, n->out[0], exact);
    }
}

static double relative_error(const Graph *g, const KernelRun *r, const EvalState *s, ValueId v)
{
    const float *got = (const float *)(const void *)r->data[v];
    const double *want = eval_get(s, v);
    double error = 0, size = 0;
    for (int64_t k = 0; k < type_elements(value_type(g, v)); k++) {
        error += ((double)got[k] - want[k]) * ((double)got[k] - want[k]);
        size += want[k] * want[k];
    }
    return sqrt(error / size);
}

/* Of one case, what the first target with fused multiply-adds has made of it. */
typedef struct Bits {
    char *bytes;
} Bits;

static void same_bits(Bits *bits, const char *got, int64_t bytes, const char *text)
{
    if (!bits->bytes) {
        bits->bytes = malloc((size_t)bytes);
        CHECK(bits->bytes != NULL);
        if (bits->bytes)
            memcpy(bits->bytes, got, (size_t)bytes);
        return;
    }
    CHECK_MSG(memcmp(bits->bytes, got, (size_t)bytes) == 0, "%s: other bits", text);
}

static void check(const Case *q, OpKind op, int m, const Target *target, Bits *bits)
{
    Pool *pool = pool_new();
    Graph *g = graph_new(pool, "case");
    ValueId out = build(g, q, op, m);
    int64_t bytes = type_bytes(value_type(g, out));
    const char *text = pool_printf(
        pool, "%s by F(%d, 3) of %s n%lld c%lld %lldx%lld k%lld pad %lld,%lld on %s", op_name(op),
        m, q->bf16 ? "bf16" : "f32", (long long)q->n, (long long)q->c, (long long)q->h,
        (long long)q->w, (long long)q->k, (long long)q->pad[0], (long long)q->pad[1], target->name);
    KernelRun *r = run_new(pool, g, target);
    if (r) {
        EvalState *s = eval_new(pool, g);
        seed = 1;
        fill(g, r, s);
        eval_run(s, false);
        run_all(r, 1000000, false);
        double error = relative_error(g, r, s, out);
        CHECK_MSG(error < (m == 4 ? BOUND_OF_4 : BOUND_OF_2), "%s: error %.2e", text, error);
        Bits once = {0};
        same_bits(&once, r->data[out], bytes, text);
        if (target->fma)
            same_bits(bits, r->data[out], bytes, text);
        memset(r->data[out], 0x7f, (size_t)bytes);
        run_all(r, 1, true);
        same_bits(&once, r->data[out], bytes, text);
        free(once.bytes);
        run_free(r);
    }
    pool_free(pool);
}

/* Compiling is what takes time: targets without fused multiply-adds get some cases only. */
static void check_targets(const Case *q, OpKind op, int m, int targets)
{
    Bits bits = {0};
    int left = sample_number("SCRIMP_TARGETS", targets);
    for (const char *const *name = target_names(); *name && left > 0; name++)
        if (target_runs_here(target_find(*name))) {
            check(q, op, m, target_find(*name), &bits);
            left--;
        }
    free(bits.bytes);
}

int main(void)
{
    static const Case cases[] = {
        /* n, c, h, w, k, pad, bias, bf16 */
        {2, 16, 8, 12, 32, {1, 1}, true, false},    /* whole tiles */
        {1, 21, 5, 7, 37, {1, 1}, true, false},     /* parts of tiles and of vectors */
        {3, 33, 2, 3, 17, {1, 1}, false, false},    /* smaller than a patch */
        {1, 64, 13, 11, 70, {0, 2}, false, false},  /* without a border, and with a wide one */
        {2, 130, 9, 6, 65, {1, 0}, false, false},   /* several chains and blocks of channels */
        {16, 16, 14, 14, 16, {1, 1}, false, false}, /* several blocks of tiles, and chunks */
        {1, 20, 74, 10, 72, {1, 1}, false, false}, /* patches in two blocks, the last one shorter */
        {2, 36, 7, 10, 24, {1, 1}, true, true},
    };
    static const OpKind ops[] = {OP_conv2d, OP_conv2d_dgrad, OP_conv2d_wgrad};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int o = 0; o < 3; o++)
            for (int m = 2; m <= 4; m += 2)
                if (i % 3 == 0 || m == 4)
                    check_targets(&cases[i], ops[o], m, i ? 2 : INT_MAX);
    return test_result();
}
