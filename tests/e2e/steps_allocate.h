/* Promise 8: a longer training run makes exactly as many allocations as a shorter one. */
#ifndef SCRIMP_TESTS_STEPS_ALLOCATE_H
#define SCRIMP_TESTS_STEPS_ALLOCATE_H

#include "tiny_model.h"

#include <stdlib.h>
#include <string.h>

static inline long count_allocations(int steps)
{
    Result r =
        run("$(dirname $SCRIMP)/tests/e2e/scrimp_counting train $TMP/tiny.scrimp --threads 2 "
            "--log $TMP/log --steps %d",
            steps);
    const char *text = strstr(r.err, "allocations: ");
    EXPECT(r.code == 0 && text, r.err);
    long n = text ? strtol(text + strlen("allocations: "), NULL, 10) : -1;
    result_free(&r);
    return n;
}

static inline void expect_no_allocation(int few, int many)
{
    write_tiny_model(1000000, 0);
    count_allocations(2); /* compiles */
    long a = count_allocations(few), b = count_allocations(many);
    char detail[100];
    snprintf(detail, sizeof detail, "%ld allocations in %d steps, %ld in %d", a, few, b, many);
    EXPECT(a == b && a > 100, detail);
    printf("%s\n", detail);
}

#endif
