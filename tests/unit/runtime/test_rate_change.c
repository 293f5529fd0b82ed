/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Other rates: against the sum over all samples that torchaudio's documentation writes down,
 * against tones that are known at any rate, and any part against the whole. */
#include "check.h"
#include "runtime/rate_change.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 700 };

static const int64_t rates[][2] = {{16000, 8000}, {8000, 16000},  {44100, 16000}, {16000, 44100},
                                   {48000, 8000}, {22050, 22049}, {1000, 384000}, {9, 7}};
enum { N_RATES = sizeof rates / sizeof *rates };

static void make(float *x)
{
    uint32_t state = 7;
    for (int i = 0; i < N; i++) {
        state = state * 1664525U + 1013904223U;
        x[i] = (float)(state >> 8) / (float)(1 << 23) - 1;
    }
}

static float *all_results(const RateChange *r, const float *x, int64_t *n)
{
    *n = rate_change_length(r, N);
    float *y = calloc((size_t)*n, sizeof *y);
    double *tap = calloc((size_t)rate_change_taps(r), sizeof *tap);
    rate_change(r, x, 0, N, 0, *n, tap, y);
    free(tap);
    return y;
}

/* x(t) = sum over i of x[i] h(t - i), h a sinc of cutoff 0.99 of the lower rate, under cos^2 over
 * six of its zeros; t counts samples. */
static double sum_of_all(const float *x, int64_t from, int64_t to, int64_t m)
{
    double cutoff = 0.99 * (to < from ? (double)to / (double)from : 1), sum = 0;
    for (int i = 0; i < N; i++) {
        double u = ((double)i - (double)m * (double)from / (double)to) * cutoff;
        if (fabs(u) >= 6)
            continue;
        double window = cos(acos(-1) * u / 12);
        sum += (double)x[i] * (u == 0 ? 1 : sin(acos(-1) * u) / (acos(-1) * u)) * window * window;
    }
    return sum * cutoff;
}

static void test_definition(void)
{
    float x[N];
    make(x);
    for (int k = 0; k < N_RATES; k++) {
        RateChange r = rate_change_make(rates[k][0], rates[k][1]);
        int64_t n, step = 1 + N * rates[k][1] / rates[k][0] / 500;
        float *y = all_results(&r, x, &n);
        CHECK(n == (N * rates[k][1] + rates[k][0] - 1) / rates[k][0]);
        for (int64_t m = 0; m < n; m += step) {
            double want = sum_of_all(x, rates[k][0], rates[k][1], m);
            CHECK_MSG(fabs((double)y[m] - want) < 1e-6, "%d -> %d, %d: %g, not %g",
                      (int)rates[k][0], (int)rates[k][1], (int)m, (double)y[m], want);
        }
        free(y);
    }
}

static void test_same_rate(void)
{
    float x[N];
    int64_t n;
    make(x);
    RateChange r = rate_change_make(11025, 11025);
    float *y = all_results(&r, x, &n);
    CHECK(n == N && memcmp(x, y, sizeof x) == 0);
    free(y);
}

/* A tone below both limits comes through, one above the lower one does not. */
static void test_tones(void)
{
    RateChange r = rate_change_make(16000, 8000);
    float x[N];
    for (int k = 0; k < 2; k++) {
        double hertz = k ? 6000 : 1000, most = 0;
        int64_t n;
        for (int i = 0; i < N; i++)
            x[i] = (float)sin(2 * acos(-1) * hertz * i / 16000);
        float *y = all_results(&r, x, &n);
        for (int64_t m = 20; m < n - 20; m++) {
            double want = k ? 0 : sin(2 * acos(-1) * hertz * (double)m / 8000);
            most = fmax(most, fabs((double)y[m] - want));
        }
        CHECK_MSG(most < 0.01, "%g Hz: %g", hertz, most);
        free(y);
    }
}

/* Any results, from the samples that they see alone, have the bits of all from all. */
static void test_parts(void)
{
    float x[N];
    make(x);
    for (int k = 0; k < N_RATES; k++) {
        RateChange r = rate_change_make(rates[k][0], rates[k][1]);
        int64_t n, lo, hi;
        float *whole = all_results(&r, x, &n), y[50];
        double *tap = calloc((size_t)rate_change_taps(&r), sizeof *tap);
        for (int64_t first = 0; first + 50 <= n; first += 1 + n / 13) {
            rate_change_window(&r, first, 50, &lo, &hi);
            lo = lo < 0 ? 0 : lo;
            hi = hi > N ? N : hi;
            float *alone = malloc((size_t)(hi - lo) * sizeof *alone); /* nothing beside it */
            memcpy(alone, x + lo, (size_t)(hi - lo) * sizeof *alone);
            rate_change(&r, alone, lo, hi, first, 50, tap, y);
            CHECK_MSG(memcmp(y, whole + first, sizeof y) == 0, "rates %d, from %d", k, (int)first);
            free(alone);
        }
        free(tap);
        free(whole);
    }
}

int main(void)
{
    test_definition();
    test_same_rate();
    test_tones();
    test_parts();
    return test_result();
}
