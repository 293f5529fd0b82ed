/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What `random` draws: the numbers that ir/random.h says, of the distributions that it says, others
 * for every seed, step and key.  The seeds are fixed; thresholds are those that one
 * generator without a fault in ten thousand would miss. */
#include "check.h"
#include "ir/eval.h"
#include "ir/support/strbuf.h"
#include "runtime/rng.h"
#include "tests/support/graph_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 100000 };
#define SIGMAS 3.891

/* Salmon et al.'s published vectors (Random123, kat_vectors, philox4x32 10). */
static void check_philox(void)
{
    static const uint32_t kat[3][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d,
         0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
         0x94fdcceb, 0x5001e420, 0x24126ea1}};
    for (int i = 0; i < 3; i++) {
        uint32_t out[4];
        philox4x32(kat[i], kat[i] + 4, out);
        CHECK(memcmp(out, kat[i] + 6, sizeof out) == 0);
    }
    CHECK(rng_bits(0, 0, 0, 0) == 0x6627e8d5);
    /* the first words of pi as counter and key: index, step, and a seed under key 0 */
    CHECK(rng_bits(0x299f31d0a4093822, 0x0370734413198a2e, 0, 0x85a308d3243f6a88) == 0xd16cfe09);
}

/* n numbers as the attributes say, on the pool. */
static double *drawn(Pool *pool, const char *attributes, int64_t n, const char *dtype,
                     const double *rng)
{
    StrBuf text = strbuf_new(pool);
    strbuf_printf(&text,
                  "  %%r = input : i32[4]\n  %%y = random %%r {shape=[%lld], %s} : %s[%lld]\n",
                  (long long)n, attributes, dtype, (long long)n);
    Graph *g = graph_of(pool, "step", text.text);
    if (!g)
        exit(1);
    EvalState *s = eval_new(pool, g);
    eval_set(s, graph_find(g, "%r"), rng);
    eval_run(s, false);
    double *copy = POOL_ARRAY(pool, (size_t)n, double);
    memcpy(copy, eval_get(s, graph_find(g, "%y")), (size_t)n * sizeof *copy);
    return copy;
}

static const double zeros[4], some[4] = {7, -1, 5, 0};
#define UNIFORM "key=3, kind=\"uniform\""
#define NORMAL  "key=3, kind=\"normal\""

/* The first words under zeros are 0x6627e8d5 and 0xe169c58d. */
static void check_values(Pool *pool)
{
    double u = *drawn(pool, "key=0, kind=\"uniform\"", 1, "f32", zeros);
    double x = *drawn(pool, "key=0, kind=\"normal\"", 1, "f32", zeros);
    double k = *drawn(pool, "key=0, kind=\"integers\", below=1000", 1, "i32", zeros);
    CHECK(u == 0x6627e8 * 0x1p-24 && k == 399);
    CHECK_MSG(fabs(x + 0.4969290652653886) < 1e-14, "%.17g", x);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double normal_cdf(double x)
{
    return erfc(-x / sqrt(2)) / 2;
}

static double uniform_cdf(double x)
{
    return x;
}

/* Kolmogorov and Smirnov's distance between the numbers and their distribution. */
static void check_distribution(Pool *pool, const char *attributes, double (*cdf)(double))
{
    double *x = drawn(pool, attributes, N, "f32", some), most = 0;
    qsort(x, N, sizeof *x, ascending);
    for (int i = 0; i < N; i++)
        most = fmax(most, fmax(cdf(x[i]) - i / (double)N, (i + 1) / (double)N - cdf(x[i])));
    CHECK_MSG(most < 2.225 / sqrt(N), "%s: the distance is %g", attributes, most);
}

static void check_moments(Pool *pool, const char *attributes, double mean, double variance,
                          double fourth)
{
    const double *x = drawn(pool, attributes, N, "f32", some);
    double sum = 0, squares = 0;
    for (int i = 0; i < N; i++) {
        sum += x[i];
        squares += (x[i] - mean) * (x[i] - mean);
    }
    CHECK_MSG(fabs(sum / N - mean) < SIGMAS * sqrt(variance / N), "%s: mean %g", attributes,
              sum / N);
    CHECK_MSG(fabs(squares / N - variance) < SIGMAS * sqrt((fourth - variance * variance) / N),
              "%s: variance %g", attributes, squares / N);
}

/* Ten counts: chi-squared with 9 degrees of freedom. */
static void check_integers(Pool *pool)
{
    const double *x = drawn(pool, "key=3, kind=\"integers\", below=10", N, "i32", some);
    double count[10] = {0}, chi = 0;
    for (int i = 0; i < N; i++) {
        CHECK(x[i] >= 0 && x[i] < 10 && x[i] == floor(x[i]));
        count[(int)x[i]]++;
    }
    for (int k = 0; k < 10; k++)
        chi += (count[k] - N / 10) * (count[k] - N / 10) / (N / 10);
    CHECK_MSG(chi < 33.72, "chi-squared of the counts is %g", chi);
    const double *wide = drawn(pool, "key=3, kind=\"integers\", below=2147483648", N, "i32", some);
    double least = 1e10, most = 0;
    for (int i = 0; i < N; i++) {
        least = fmin(least, wide[i]);
        most = fmax(most, wide[i]);
    }
    CHECK(least >= 0 && least < 1e6 && most < 0x1p31 && most > 0x1p31 - 1e6);
}

/* How often each order of four comes, as std/random's permutation makes it: chi-squared with 23
 * degrees of freedom. */
static void check_orders(Pool *pool)
{
    enum { ROWS = 24000, CODES = 256 };
    double count[CODES] = {0}, chi = 0;
    Graph *g = graph_of(pool, "step",
                        "  %r = input : i32[4]\n"
                        "  %x = random %r {shape=[24000,4], key=3, kind=\"integers\", "
                        "below=2147483648} : i32[24000,4]\n"
                        "  %y = argsort %x : i32[24000,4]\n");
    if (!g)
        exit(1);
    EvalState *s = eval_new(pool, g);
    eval_set(s, graph_find(g, "%r"), some);
    eval_run(s, false);
    const double *y = eval_get(s, graph_find(g, "%y"));
    for (int i = 0; i < ROWS; i++)
        count[(int)(y[4 * i] * 64 + y[4 * i + 1] * 16 + y[4 * i + 2] * 4 + y[4 * i + 3])]++;
    int orders = 0;
    for (int k = 0; k < CODES; k++) {
        orders += count[k] > 0;
        chi += count[k] > 0 ? (count[k] - 1000) * (count[k] - 1000) / 1000 : 0;
    }
    CHECK_MSG(orders == 24 && chi < 57.3, "%d orders, chi-squared %g", orders, chi);
}

/* Correlation of two rows of normal numbers. */
static void check_apart(const double *x, const double *y, int n, const char *what)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] * y[i];
    CHECK_MSG(fabs(sum / n) < SIGMAS / sqrt(n), "%s: the correlation is %g", what, sum / n);
}

static void check_streams(Pool *pool)
{
    const double *x = drawn(pool, NORMAL, N, "f32", some);
    check_apart(x, x + 1, N - 1, "neighbours");
    check_apart(x, drawn(pool, "key=4, kind=\"normal\"", N, "f32", some), N, "keys");
    check_apart(x, drawn(pool, NORMAL, N, "f32", (const double[]){8, -1, 5, 0}), N, "seeds");
    check_apart(x, drawn(pool, NORMAL, N, "f32", (const double[]){7, 0, 5, 0}), N, "high seeds");
    check_apart(x, drawn(pool, NORMAL, N, "f32", (const double[]){7, -1, 6, 0}), N, "steps");
    check_apart(x, drawn(pool, NORMAL, N, "f32", (const double[]){7, -1, 5, INT32_MIN}), N,
                "training and evaluation");
    CHECK(memcmp(x, drawn(pool, NORMAL, N, "f32", some), N * sizeof *x) == 0);
}

int main(void)
{
    Pool *pool = pool_new();
    check_philox();
    check_values(pool);
    check_distribution(pool, UNIFORM, uniform_cdf);
    check_distribution(pool, NORMAL, normal_cdf);
    check_moments(pool, UNIFORM, 0.5, 1 / 12.0, 1 / 80.0);
    check_moments(pool, NORMAL, 0, 1, 3);
    check_integers(pool);
    check_orders(pool);
    check_streams(pool);
    pool_free(pool);
    return test_result();
}
