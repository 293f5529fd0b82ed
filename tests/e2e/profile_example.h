/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `scrimp plan --cost profile` of an example: kernels are measured for the smallest plan, and the
 * same measurements serve another budget. */
#ifndef SCRIMP_TESTS_PROFILE_EXAMPLE_H
#define SCRIMP_TESTS_PROFILE_EXAMPLE_H

#include <stdbool.h>

typedef struct ProfileExample {
    const char *args; /* file and options */
    bool has_half;    /* 50% can be met */
} ProfileExample;

void profile_example(const ProfileExample *e);

#endif
