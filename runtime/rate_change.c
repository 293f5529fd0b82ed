/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Result m is the sound at time m / to, in seconds of `from` samples each.  Results whose number is
 * equal modulo `to` lie at the same place between two samples, and have the same weights: these are
 * the phases of a polyphase filter, computed once each and used for all of their results. */
#include "runtime/rate_change.h"

#include <math.h>

static const double ZERO_CROSSINGS = 6, ROLLOFF = 0.99;

/* A little below half of the lower rate is what comes through, in units of half of `from`. */
static double base(const RateChange *r)
{
    return ROLLOFF * (double)(r->from < r->to ? r->from : r->to);
}

RateChange rate_change_make(int64_t from, int64_t to)
{
    int64_t a = from, b = to;
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    RateChange r = {from / a, to / a, 0};
    if (r.from != r.to)
        r.width = (int64_t)ceil(ZERO_CROSSINGS * (double)r.from / base(&r));
    return r;
}

int64_t rate_change_taps(const RateChange *r)
{
    return r->from == r->to ? 1 : 2 * r->width + 2;
}

int64_t rate_change_length(const RateChange *r, int64_t n)
{
    return n / r->from * r->to + (n % r->from * r->to + r->from - 1) / r->from;
}

/* The sample at or before the time of result m. */
static int64_t sample_before(const RateChange *r, int64_t m)
{
    return m / r->to * r->from + m % r->to * r->from / r->to;
}

void rate_change_window(const RateChange *r, int64_t first, int64_t n, int64_t *lo, int64_t *hi)
{
    *lo = sample_before(r, first) - r->width;
    *hi = sample_before(r, first + n - 1) - r->width + rate_change_taps(r);
}

static double weight(const RateChange *r, double seconds)
{
    double t = seconds * base(r);
    if (fabs(t) >= ZERO_CROSSINGS)
        return 0;
    double window = cos(t * M_PI / ZERO_CROSSINGS / 2);
    double sinc = t == 0 ? 1 : sin(M_PI * t) / (M_PI * t);
    return sinc * window * window * base(r) / (double)r->from;
}

/* The weights of a result of this phase; the first one is that of sample_before - width. */
static void phase_weights(const RateChange *r, int64_t phase, double *tap)
{
    int64_t before = phase * r->from / r->to;
    if (r->from == r->to) {
        tap[0] = 1;
        return;
    }
    for (int64_t k = 0; k < rate_change_taps(r); k++)
        tap[k] = weight(r, (double)(before - r->width + k) / (double)r->from -
                               (double)phase / (double)r->to);
}

void rate_change(const RateChange *r, const float *x, int64_t lo, int64_t hi, int64_t first,
                 int64_t n, double *tap, float *dst)
{
    int64_t taps = rate_change_taps(r), phases = n < r->to ? n : r->to;
    for (int64_t p = 0; p < phases; p++) {
        phase_weights(r, (first + p) % r->to, tap);
        for (int64_t i = p; i < n; i += r->to) {
            int64_t at = sample_before(r, first + i) - r->width;
            int64_t k = at < lo ? lo - at : 0, end = at + taps > hi ? hi - at : taps;
            double sum = 0;
            for (; k < end; k++)
                sum += tap[k] * (double)x[at + k - lo];
            dst[i] = (float)sum;
        }
    }
}
