/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The whole test framework: CHECK counts and reports, test_result() is main's exit status. */
#ifndef SCRIMP_TESTS_CHECK_H
#define SCRIMP_TESTS_CHECK_H

#include <stdio.h>

/* In check.c, so that helpers of tests count with the test. */
extern int check_failures;

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: CHECK failed: %s\n", __FILE__, __LINE__, #cond);               \
            check_failures++;                                                                      \
        }                                                                                          \
    } while (0)

/* CHECK with a printf-style explanation, for loops over cases. */
#define CHECK_MSG(cond, ...)                                                                       \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: CHECK failed: %s: ", __FILE__, __LINE__, #cond);               \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            check_failures++;                                                                      \
        }                                                                                          \
    } while (0)

int test_result(void);

#endif
