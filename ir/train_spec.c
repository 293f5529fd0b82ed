/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/train_spec.h"

#include <math.h>

static double decay(const LrSchedule *lr, double t, double u, double every, double warmup)
{
    switch (lr->kind) {
    case LR_COSINE:
        return lr->min + (lr->base - lr->min) * (1 + cos(acos(-1.0) * u)) / 2;
    case LR_LINEAR:
        if (lr->power > 0 && lr->power != 1)
            return lr->min + (lr->base - lr->min) * pow(1 - u, lr->power);
        return lr->base + (lr->min - lr->base) * u;
    case LR_STEP:
        return every > 0 ? lr->base * pow(lr->factor, floor(fmax(t, 0) / every)) : lr->base;
    case LR_INVERSE_SQRT:
        return lr->base * sqrt(fmax(warmup, 1) / (t + 1));
    case LR_CONSTANT:
        break;
    }
    return lr->base;
}

double lr_at(const LrSchedule *lr, int64_t t, int64_t total, int64_t updates_per_epoch)
{
    double unit = lr->in_epochs ? (double)updates_per_epoch : 1.0;
    /* Whole updates: a fraction would overshoot the base in the last one. */
    double warmup = floor(lr->warmup * unit + 0.5), now = (double)t;
    if (now < warmup)
        return lr->base * (now + 1) / warmup;
    double length = (double)total - warmup;
    double u = length > 0 ? (now - warmup) / length : 1.0;
    if (lr->kind == LR_STEP)
        now -= floor(lr->start * unit + 0.5);
    return decay(lr, now, u < 1.0 ? u : 1.0, lr->every * unit, warmup);
}
