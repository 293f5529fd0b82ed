/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/random.h"

uint64_t random_next(Random *r)
{
    r->state = r->state * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = r->state;
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdu;
    return x ^ x >> 29;
}

int random_below(Random *r, int n)
{
    return (int)(random_next(r) % (uint64_t)n);
}
