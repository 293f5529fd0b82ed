/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The operation `random`: which numbers it draws.  Number i is made of the words w0, w1, ... that
 * the counter generator (ir/rng.c) gives for the seed and step of its input, its key, and i. */
#ifndef SCRIMP_IR_RANDOM_H
#define SCRIMP_IR_RANDOM_H

#include "ir/graph.h"

typedef enum RandomKind {
    RANDOM_UNIFORM, /* f32 in [0, 1): the upper 24 bits of w0 times 2^-24 */
    /* f32 of mean 0 and variance 1, after Box and Muller, "A note on the generation of random
     * normal deviates" (1958): sqrt(-2 ln u) sin(pi v) with u = (w0 >> 1 | 1) 2^-31, rounded to
     * f32, and v = (w1 >> 7 | 1) 2^-25, where w1 is signed, so that |v| < 1/2: half a turn has the
     * sines of a whole one.  |x| < 6.56 */
    RANDOM_NORMAL,
    /* i32 in [0, below): the upper word of w0 times below.  The chance of a number is off by at
     * most the part below / 2^32 of it. */
    RANDOM_INTEGERS,
    RANDOM_KINDS
} RandomKind;

extern const char *const random_kind_name[RANDOM_KINDS];
/* The attribute `kind`; RANDOM_KINDS when it is none of these. */
RandomKind random_kind(const Node *n);
/* The most that `below` may be. */
#define RANDOM_MOST ((int64_t)1 << 31)

#endif
