/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A compiled step whose loss is made in chunks, against the gradients of a softmax written out
 * here: labels that are no classes, which the evaluator refuses, take no part. */
#include "check.h"
#include "tests/support/graph_text.h"
#include "tests/support/run/run_kernels.h"

#include "passes/pass.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 515, WIDTH = 2, CLASSES = 8 };

static const char lines[] = "  train {optim=sgd, lr=constant, accumulate=1}\n"
                            "  %%x = input {role=\"batch.x\"} : f32[515,2]\n"
                            "  %%y = input {role=\"batch.y\"} : i32[515]\n  $w = param : f32[8,2]\n"
                            "  $b = param : f32[8]\n  %%l = linear %%x, $w, $b : f32[515,8]\n"
                            "  %%loss = cross_entropy %%l, %%y {ignore_index=%d} : f32[]\n"
                            "  %%a = accuracy %%l, %%y {ignore_index=%d} : f32[]\n"
                            "  output loss = %%loss\n  output a = %%a\n";

typedef int32_t LabelOf(int i);

/* A third are classes, most of the others are just outside. */
static int32_t wild(int i)
{
    static const int32_t outside[] = {-1, 8, INT32_MIN, INT32_MAX, 9, -100, 255, -8};
    return i % 3 ? outside[i % 8] : (int32_t)((uint32_t)i * 2654435761u >> 29);
}

static int32_t outside_all(int i)
{
    return i % 2 ? -1 - i : CLASSES + i;
}

static float element(int place, int i)
{
    return (float)sin(1.3 * place + 2.3 * i);
}

static const float *row_of_x(const float *x, int i)
{
    return x + (ptrdiff_t)i * WIDTH;
}

typedef struct Expected {
    double loss, accuracy, dw[CLASSES * WIDTH], db[CLASSES];
} Expected;

/* One row's part of all sums. */
static void add_row(Expected *e, const float *x, int32_t label, const float *w, const float *b)
{
    double logit[CLASSES], sum = 0;
    int best = 0;
    for (int c = 0; c < CLASSES; c++) {
        logit[c] = (double)b[c];
        for (int k = 0; k < WIDTH; k++)
            logit[c] += (double)x[k] * (double)w[c * WIDTH + k];
        best = logit[c] > logit[best] ? c : best;
        sum += exp(logit[c]);
    }
    e->loss += log(sum) - logit[label];
    e->accuracy += best == label;
    for (int c = 0; c < CLASSES; c++) {
        double d = exp(logit[c]) / sum - (c == label);
        e->db[c] += d;
        for (int k = 0; k < WIDTH; k++)
            e->dw[c * WIDTH + k] += d * (double)x[k];
    }
}

static Expected expected(const float *x, const int32_t *label, int ignored, const float *w,
                         const float *b)
{
    Expected e = {0};
    int count = 0;
    for (int i = 0; i < ROWS; i++)
        if (label[i] >= 0 && label[i] < CLASSES && label[i] != ignored) {
            add_row(&e, row_of_x(x, i), label[i], w, b);
            count++;
        }
    double part = count ? 1.0 / count : 0;
    e.loss *= part;
    e.accuracy *= part;
    for (int c = 0; c < CLASSES; c++)
        e.db[c] *= part;
    for (int k = 0; k < CLASSES * WIDTH; k++)
        e.dw[k] *= part;
    return e;
}

static float *floats(const KernelRun *r, const char *name)
{
    ValueId v = graph_find(r->graph, name);
    CHECK_MSG(v != VALUE_NONE, "%s", name);
    return v == VALUE_NONE ? NULL : (float *)(void *)r->data[v];
}

static void fill(const KernelRun *r, const char *name, int place, int n)
{
    float *data = floats(r, name);
    for (int i = 0; data && i < n; i++)
        data[i] = element(place, i);
}

static void check_near(const char *what, const float *got, const double *want, int n)
{
    for (int i = 0; got && i < n; i++)
        CHECK_MSG(fabs((double)got[i] - want[i]) <= 2e-6, "%s[%d] is %.9g instead of %.9g", what, i,
                  (double)got[i], want[i]);
}

static void check_run(const KernelRun *r, int ignored, LabelOf *label)
{
    fill(r, "%x", 1, ROWS * WIDTH);
    fill(r, "$w", 2, CLASSES * WIDTH);
    fill(r, "$b", 3, CLASSES);
    *floats(r, "%lr") = 0.5F;
    int32_t *y = (int32_t *)(void *)r->data[graph_find(r->graph, "%y")];
    for (int i = 0; i < ROWS; i++)
        y[i] = label(i);
    const Expected e = expected(floats(r, "%x"), y, ignored, floats(r, "$w"), floats(r, "$b"));
    run_once(r);
    check_near("loss", (float *)(void *)r->data[graph_output(r->graph, "loss")], &e.loss, 1);
    check_near("accuracy", (float *)(void *)r->data[graph_output(r->graph, "a")], &e.accuracy, 1);
    check_near("$d.w", floats(r, "$d.w"), e.dw, CLASSES * WIDTH);
    check_near("$d.b", floats(r, "$d.b"), e.db, CLASSES);
}

int main(void)
{
    const int ignored = 3;
    Pool *pool = pool_new();
    PassContext ctx = {.graph =
                           graph_of(pool, "forward", pool_printf(pool, lines, ignored, ignored)),
                       .pool = pool};
    bool ok = ctx.graph && passes_run(&ctx, "chunks,autodiff,fold,cse,dce", NULL, NULL);
    CHECK(ok && graph_text_count(ctx.graph, "= cross_entropy_grad") == 2);
    KernelRun *r = ok ? run_new(pool, ctx.graph, target_find("generic")) : NULL;
    if (r) {
        check_run(r, ignored, wild);
        check_run(r, ignored, outside_all);
        run_free(r);
    }
    pool_free(pool);
    return test_result();
}
