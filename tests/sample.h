/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How much a test does: a sample by default, more when the environment says so, which the rows of
 * tests/CMakeLists.txt for the configuration Slow do. */
#ifndef SCRIMP_TESTS_SAMPLE_H
#define SCRIMP_TESTS_SAMPLE_H

#include <stdbool.h>
#include <stdlib.h>

/* The number that the variable `name` holds, else `otherwise`. */
static inline int sample_number(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

/* Of searches for plans, where any plan that recomputes will do: a tenth of the usual work finds
 * one. SCRIMP_EFFORT is another share. */
static inline double sample_effort(void)
{
    const char *text = getenv("SCRIMP_EFFORT");
    return text ? atof(text) : 0.1;
}

/* SCRIMP_ALL=1: every case. */
static inline bool sample_all(void)
{
    return getenv("SCRIMP_ALL");
}

#endif
