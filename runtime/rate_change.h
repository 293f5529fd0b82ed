/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Samples at one rate from samples at another, by a sinc under a Hann window, as
 * torchaudio.functional.resample does by default (6 zero crossings to a side, rolloff 0.99).
 * Called by sound.c. */
#ifndef SCRIMP_RUNTIME_RATE_CHANGE_H
#define SCRIMP_RUNTIME_RATE_CHANGE_H

#include <stdint.h>

/* From `from` to `to` samples a second, without a common divisor. */
typedef struct RateChange {
    int64_t from, to;
    int64_t width; /* input samples that a result sees to a side of its time */
} RateChange;

RateChange rate_change_make(int64_t from, int64_t to);
/* Weights of one result. */
int64_t rate_change_taps(const RateChange *r);
/* How many results n samples have. */
int64_t rate_change_length(const RateChange *r, int64_t n);
/* The samples [*lo, *hi) that results first .. first + n - 1 see; they may lie outside of the
 * sound, where it is 0. */
void rate_change_window(const RateChange *r, int64_t first, int64_t n, int64_t *lo, int64_t *hi);
/* Results first .. first + n - 1, n > 0, of which x has the samples [lo, hi); tap has room for the
 * weights of one. */
void rate_change(const RateChange *r, const float *x, int64_t lo, int64_t hi, int64_t first,
                 int64_t n, double *tap, float *dst);

#endif
