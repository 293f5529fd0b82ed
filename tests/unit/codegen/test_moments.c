/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sums by channel: of rows that lie apart in another value, and of the same rows side by side.  The
 * order of a sum is one, however rows are read: the bits are the same, and near those of the
 * reference evaluator, by every target of this host. */
#include "check.h"
#include "tests/support/graph_text.h"
#include "tests/support/run/run_inputs.h"

#include <math.h>
#include <string.h>

typedef struct Shape {
    int rows, channels;
} Shape;

/* Chunks of few rows, and of many with some left over; channels for every width of vectors, part of
 * a vector, and more than have their sums in a cache at a time. */
static const Shape shapes[] = {{320, 48}, {643, 33}, {5003, 16}, {9001, 70}, {1411, 1100}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

/* Results of rows side by side, and of rows apart; layer norm reads no others. */
static const char *const results[][2] = {{"mean", "mean_apart"},   {"var", "var_apart"},
                                         {"gamma", "gamma_apart"}, {"beta", "beta_apart"},
                                         {"weight", "weight"},     {"bias", "bias"}};
enum { N_RESULTS = sizeof results / sizeof *results };

static const char *lines(Pool *pool, Shape s)
{
    int r = s.rows, c = s.channels;
    const char *image = pool_printf(pool, "f32[%d,%d]", r, c);
    const char *rows = pool_printf(pool, "f32[%d]", r);
    const char *two = pool_printf(pool, "f32[%d], f32[%d]", c, c);
    const char *part = pool_printf(pool, "{start=[0,8], limit=[%d,%d], step=[1,1]}", r, c + 8);
    StrBuf b = strbuf_new(pool);
    strbuf_printf(&b, "  %%dy = input : %s\n  %%all = input : f32[%d,%d]\n", image, r, c + 24);
    strbuf_printf(&b, "  %%row_mean = input : %s\n  %%rstd = input : %s\n", rows, rows);
    strbuf_printf(&b, "  %%x = slice %%all %s : %s\n", part, image);
    strbuf_printf(&b, "  %%apart = subview %%all %s : %s\n", part, image);
    strbuf_printf(&b, "  %%m, %%m#1 = bn_stats %%x {axis=1} : %s\n", two);
    strbuf_printf(&b, "  %%n, %%n#1 = bn_stats %%apart {axis=1} : %s\n", two);
    strbuf_printf(&b, "  %%g, %%g#1 = bn_grad_sums %%dy, %%x, %%m, %%m#1 {axis=1} : %s\n", two);
    strbuf_printf(&b, "  %%h, %%h#1 = bn_grad_sums %%dy, %%apart, %%m, %%m#1 {axis=1} : %s\n", two);
    strbuf_printf(&b, "  %%l, %%l#1 = layernorm_grad_sums %%dy, %%x, %%row_mean, %%rstd : %s\n",
                  two);
    strbuf_printf(&b, "  output mean = %%m\n  output var = %%m#1\n"
                      "  output mean_apart = %%n\n  output var_apart = %%n#1\n"
                      "  output gamma = %%g\n  output beta = %%g#1\n"
                      "  output gamma_apart = %%h\n  output beta_apart = %%h#1\n"
                      "  output weight = %%l\n  output bias = %%l#1\n");
    return b.text;
}

/* In [-1, 1). */
static double element(size_t place, int64_t i)
{
    uint64_t r = ((uint64_t)i + 1 + ((uint64_t)place << 32)) * 0x9e3779b97f4a7c15u;
    r = (r ^ r >> 29) * 0xbf58476d1ce4e5b9u;
    return (double)(r >> 40) / (1 << 23) - 1;
}

static void compare(const Graph *g, const KernelRun *r, const EvalState *s, const char *target,
                    Shape shape)
{
    for (size_t k = 0; k < N_RESULTS; k++) {
        ValueId v = graph_output(g, results[k][0]), apart = graph_output(g, results[k][1]);
        const double *want = eval_get(s, v);
        const float *got = (const float *)(const void *)r->data[v];
        int64_t n = type_elements(value_type(g, v));
        CHECK_MSG(!memcmp(got, r->data[apart], (size_t)n * sizeof *got), "%s, %d x %d: bits of %s",
                  target, shape.rows, shape.channels, results[k][1]);
        double worst = 0;
        for (int64_t i = 0; i < n; i++)
            worst = fmax(worst, fabs((double)got[i] - want[i]));
        CHECK_MSG(worst < 2e-6 * sqrt(shape.rows), "%s, %d x %d: %s is wrong by %g", target,
                  shape.rows, shape.channels, results[k][0], worst);
    }
}

static void check_shape(const Target *target, const char *name, Shape shape)
{
    Pool *pool = pool_new();
    const Graph *g = graph_of(pool, "forward", lines(pool, shape));
    EvalState *s = g ? eval_new(pool, g) : NULL;
    KernelRun *r = g ? run_new(pool, g, target) : NULL;
    if (r) {
        run_fill_inputs(r, s, element);
        eval_run(s, true);
        run_all(r, 1 << 20, false);
        compare(g, r, s, name, shape);
        run_all(r, 3, true);
        compare(g, r, s, name, shape);
        run_free(r);
    }
    pool_free(pool);
}

int main(void)
{
    for (const char *const *name = target_names(); *name; name++) {
        const Target *t = target_find(*name);
        for (size_t k = 0; target_runs_here(t) && k < N_SHAPES; k++)
            check_shape(t, *name, shapes[k]);
    }
    return test_result();
}
