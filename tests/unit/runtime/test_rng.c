/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/rng.h"

#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The known answers published with Random123 (kat_vectors, philox4x32 10). */
static void test_known_answers(void)
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } kat[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof kat / sizeof *kat; i++) {
        uint32_t out[4];
        rt_philox4x32(kat[i].counter, kat[i].key, out);
        CHECK_MSG(memcmp(out, kat[i].out, sizeof out) == 0, "vector %zu", i);
    }
}

/* Where seed, step, key and index go into Philox decides every dropout mask, every initial weight
 * and the order of the data: checkpoints rely on it.  Computed apart, in Python. */
static void test_words(void)
{
    CHECK(rt_rng_bits(7, 3, 5, 11) == 0x3a12a7cb);
    CHECK(rt_rng_bits(7, (1ull << 32) + 3, 0x123456789abcdef1, (1ull << 33) + 5) == 0xa08cc8c6);
    CHECK(rt_rng_bits(UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX) == 0xe456f0ea);
    CHECK(rt_rng_below(0xfedcba9876543211, 1, 2, 3, 4) == 0x4d2d509bcedcfd6d);
    CHECK(rt_rng_below(0xfedcba9876543211, 5, 6, 7, (1ull << 32) + 8) == 0x26f159124b580e3e);
}

static void test_below(void)
{
    int64_t count[7] = {0};
    for (uint64_t i = 0; i < 70000; i++) {
        uint64_t v = rt_rng_below(7, 1, 2, 3, i);
        CHECK(v < 7);
        count[v % 7]++;
    }
    double chi2 = 0;
    for (int v = 0; v < 7; v++)
        chi2 += ((double)count[v] - 10000) * ((double)count[v] - 10000) / 10000;
    CHECK_MSG(chi2 < 22.5, "%g", chi2); /* 6 degrees of freedom, p = 0.001 */
    CHECK(rt_rng_below(1, 9, 9, 9, 9) == 0);
}

static void test_permutation(void)
{
    static const uint64_t sizes[] = {1, 2, 3, 4, 5, 16, 17, 100, 1000, 4097};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        uint64_t n = sizes[s], same = 0;
        unsigned char *seen = calloc(n, 1);
        for (uint64_t i = 0; i < n; i++) {
            uint64_t j = rt_permute(i, n, 42, 0);
            CHECK(j < n && !seen[j < n ? j : 0]);
            seen[j < n ? j : 0] = 1;
            same += j == rt_permute(i, n, 42, 1);
        }
        if (n >= 100) /* another epoch, another order; about one fixed point is expected */
            CHECK_MSG(same < 10, "%d equal of %d", (int)same, (int)n);
        free(seen);
    }
}

/* Which examples share a batch must not depend on where they are stored: the first tenth of a
 * permutation draws evenly from everywhere. */
static void test_permutation_spread(void)
{
    int count[10] = {0};
    for (uint64_t epoch = 0; epoch < 100; epoch++)
        for (uint64_t i = 0; i < 100; i++)
            count[rt_permute(i, 1000, 7, epoch) / 100]++;
    for (int d = 0; d < 10; d++)
        CHECK_MSG(abs(count[d] - 1000) < 150, "decile %d: %d", d, count[d]);
}

static void moments(const float *x, int64_t n, double *mean, double *deviation, double *kurtosis)
{
    double s1 = 0, s2 = 0, s4 = 0;
    for (int64_t i = 0; i < n; i++)
        s1 += (double)x[i];
    *mean = s1 / (double)n;
    for (int64_t i = 0; i < n; i++) {
        double d = (double)x[i] - *mean;
        s2 += d * d;
        s4 += d * d * d * d;
    }
    *deviation = sqrt(s2 / (double)n);
    *kurtosis = s4 / (double)n / (s2 / (double)n) / (s2 / (double)n);
}

static void test_fills(void)
{
    enum { N = 200001 };
    float *a = malloc(N * sizeof *a), *b = malloc(N * sizeof *b);
    RtError err = {{0}};
    double mean, deviation, kurtosis;
    CHECK(rt_init_fill(a, N, "normal(0.02)", 5, "h.0.weight", &err));
    moments(a, N, &mean, &deviation, &kurtosis);
    CHECK_MSG(fabs(mean) < 0.0002 && fabs(deviation - 0.02) < 0.0002, "%g %g", mean, deviation);
    CHECK_MSG(fabs(kurtosis - 3) < 0.06, "%g", kurtosis);
    /* Element i depends on (seed, name, i) only: a shorter fill is a prefix, other keys differ. */
    CHECK(rt_init_fill(b, 1001, "normal(0.02)", 5, "h.0.weight", &err));
    CHECK(memcmp(a, b, 1001 * sizeof *a) == 0);
    CHECK(rt_init_fill(b, 1000, "normal(0.02)", 5, "h.1.weight", &err) && b[0] != a[0]);
    CHECK(rt_init_fill(b, 1000, "normal(0.02)", 6, "h.0.weight", &err) && b[0] != a[0]);

    CHECK(rt_init_fill(a, N, "normal(0.02,1)", 5, "h.0.weight", &err));
    moments(a, N, &mean, &deviation, &kurtosis);
    CHECK_MSG(fabs(mean - 1) < 0.0002 && fabs(deviation - 0.02) < 0.0002, "%g %g", mean, deviation);

    CHECK(rt_init_fill(a, N, "uniform(-0.1,0.3)", 5, "x", &err));
    moments(a, N, &mean, &deviation, &kurtosis);
    CHECK(fabs(mean - 0.1) < 0.001 && fabs(deviation - 0.4 / sqrt(12)) < 0.001);
    for (int i = 0; i < N; i++)
        CHECK(a[i] >= -0.1f && a[i] <= 0.3f);
    CHECK(rt_init_fill(a, 3, "zeros", 5, "x", &err) && a[2] >= 0 && a[2] <= 0);
    CHECK(rt_init_fill(a, 3, "ones", 5, "x", &err) && a[2] >= 1 && a[2] <= 1);
    CHECK(rt_init_fill(a, 3, "value(-2.5)", 5, "x", &err) && a[1] >= -2.5f && a[1] <= -2.5f);
    CHECK(rt_init_fill(a, 3, "uniform(-1, 1)", 5, "x", &err)); /* a space is fine */

    static const char *const bad[] = {
        "",           "zero",       "normal",       "normal()",   "normal(1",     "normal(1,2,3)",
        "normal(1)x", "uniform(1)", "uniform(2,1)", "value(nan)", "value(1e999)", "normal(x)"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_MSG(!rt_init_fill(a, 3, bad[i], 5, "fc.weight", &err), "%s", bad[i]);
        CHECK(strstr(err.message, "fc.weight"));
    }
    free(a);
    free(b);
}

int main(void)
{
    test_known_answers();
    test_words();
    test_below();
    test_permutation();
    test_permutation_spread();
    test_fills();
    return test_result();
}
