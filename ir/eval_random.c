/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reference evaluation of `random`, as ir/random.h defines it. */
#include "ir/eval_internal.h"
#include "ir/random.h"

#include <math.h>

static double uniform(const uint32_t *word)
{
    return (double)(word[0] >> 8) * 0x1p-24;
}

static double normal(const uint32_t *word)
{
    const double pi = 3.14159265358979323846;
    double u = (double)(float)((double)(word[0] >> 1 | 1) * 0x1p-31);
    double v = (2 * floor((double)(int32_t)word[1] / 256) + 1) * 0x1p-25;
    return sqrt(-2 * log(u)) * sin(pi * v);
}

static double integer(const uint32_t *word, uint64_t below)
{
    return (double)(word[0] * below >> 32);
}

void eval_random(EvalState *s, const Node *n)
{
    const double *rng = eval_in(s, n, 0);
    double *y = eval_out(s, n, 0);
    uint64_t key = (uint64_t)node_int(n, ATTR_key, 0), below = (uint64_t)node_int(n, ATTR_below, 0);
    uint64_t seed = eval_words(rng[0], rng[1]), step = eval_words(rng[2], rng[3]);
    RandomKind kind = random_kind(n);
    for (int64_t i = 0, end = eval_out_count(s, n, 0); i < end; i++) {
        uint32_t word[4];
        rng_words(seed, step, key, (uint64_t)i, word);
        y[i] = kind == RANDOM_UNIFORM  ? uniform(word)
               : kind == RANDOM_NORMAL ? normal(word)
                                       : integer(word, below);
    }
}
