/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random numbers of tests: the same everywhere. */
#ifndef SCRIMP_TESTS_SUPPORT_RANDOM_H
#define SCRIMP_TESTS_SUPPORT_RANDOM_H

#include <stdint.h>

typedef struct Random {
    uint64_t state;
} Random;

uint64_t random_next(Random *r);

int random_below(Random *r, int n);

#endif
