/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_turns.h"

#include "frontend/driver/cli_signals.h"
#include "runtime/rng.h"

#include <string.h>
#include <time.h>

enum { DRAWS = 2000 };

/* Workers of the other side spin for a while after its step, on the same cores. */
static void let_sleep(void)
{
    nanosleep(&(struct timespec){0, 12000000}, NULL);
}

/* The step that is counted finds threads awake, and caches as a run of such steps has them. */
static bool one_turn(Measurement *m, int64_t pair)
{
    let_sleep();
    return measurement_step(m, pair) && measurement_step(m, pair);
}

int64_t turns_take(Measurement *a, Measurement *b, int64_t pairs)
{
    if (!measurement_begin(a, pairs, DETAIL_NONE) || !measurement_begin(b, pairs, DETAIL_NONE))
        return 0;
    int64_t i = 0;
    for (; i < pairs && !signals_caught(); i++) {
        Measurement *first = i % 2 ? b : a, *second = i % 2 ? a : b;
        if (!one_turn(first, i) || !one_turn(second, i))
            break;
    }
    return i;
}

static double median_of(double *seconds, int64_t n)
{
    return measurement_spread(seconds, n).median;
}

/* What lies between the 2.5th and the 97.5th of the ratios of pairs that are drawn with
 * replacement (Efron, "Bootstrap Methods: Another Look at the Jackknife", 1979); the same draws in
 * every run. */
Ratio turns_ratio(Pool *pool, const double *a, const double *b, int64_t n)
{
    double *x = POOL_ARRAY(pool, (size_t)n, double), *y = POOL_ARRAY(pool, (size_t)n, double);
    double *ratio = POOL_ARRAY(pool, DRAWS, double);
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        for (int64_t i = 0; i < n; i++) {
            uint64_t k = rt_rng_below((uint64_t)n, 1, draw, 0, (uint64_t)i);
            x[i] = a[k];
            y[i] = b[k];
        }
        ratio[draw] = median_of(y, n) / median_of(x, n);
    }
    memcpy(x, a, (size_t)n * sizeof *x);
    memcpy(y, b, (size_t)n * sizeof *y);
    measurement_sort(ratio, DRAWS);
    return (Ratio){median_of(y, n) / median_of(x, n), ratio[DRAWS / 40],
                   ratio[DRAWS - 1 - DRAWS / 40]};
}

Spread turns_spread(Pool *pool, const double *seconds, int64_t n)
{
    double *copy = POOL_ARRAY(pool, (size_t)n + 1, double);
    memcpy(copy, seconds, (size_t)n * sizeof *copy);
    return measurement_spread(copy, n);
}
