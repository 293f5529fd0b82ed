/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How much a test does: a sample by default, more when the environment says so, which the rows of
 * tests/CMakeLists.txt for the configuration Slow do. */
#ifndef SCRIMP_TESTS_SAMPLE_H
#define SCRIMP_TESTS_SAMPLE_H

#include <stdbool.h>

/* The number that the variable `name` holds, else `otherwise`. */
int sample_number(const char *name, int otherwise);
/* Of searches for plans, where any plan that recomputes will do: a tenth of the usual work finds
 * one. SCRIMP_EFFORT is another share. */
double sample_effort(void);
/* SCRIMP_ALL=1: every case. */
bool sample_all(void);

#endif
