/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Two settings of a step in turns, and the ratio of their times. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_TURNS_H
#define SCRIMP_FRONTEND_DRIVER_CLI_TURNS_H

#include "frontend/driver/cli_measure.h"

/* Steps of each, A B B A: what changes slowly on a machine is on both sides.  Each is counted
 * behind one that is not.  How many pairs were taken: fewer behind a message, or when a signal was
 * caught. */
int64_t turns_take(Measurement *a, Measurement *b, int64_t pairs);

/* B to A. */
typedef struct Ratio {
    double median, low, high;
} Ratio;
/* The ratio of the medians of n pairs, and what it lies between in 95% of draws. */
Ratio turns_ratio(Pool *pool, const double *a, const double *b, int64_t n);
/* Median and quartiles of n times, which stay in their order. */
Spread turns_spread(Pool *pool, const double *seconds, int64_t n);

#endif
