/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The runtime sees nothing of the compiler, so what both must agree on is compared here: the random
 * generator (dropout in the reference and in generated code, initial parameters) and the numbering
 * of element types. */
#include "check.h"
#include "ir/eval.h"
#include "ir/type.h"
#include "runtime/dtype.h"
#include "runtime/rng.h"

#include <string.h>

static void test_generator(void)
{
    uint64_t x = 88172645463325252u; /* xorshift64, Marsaglia 2003: any numbers will do */
    for (int i = 0; i < 100000; i++) {
        uint64_t v[4];
        for (int k = 0; k < 4; k++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            v[k] = x >> (x % 61);
        }
        CHECK_MSG(rng_bits(v[0], v[1], v[2], v[3]) == rt_rng_bits(v[0], v[1], v[2], v[3]),
                  "seed %llx step %llx key %llx index %llx", (unsigned long long)v[0],
                  (unsigned long long)v[1], (unsigned long long)v[2], (unsigned long long)v[3]);
    }
}

static void test_types(void)
{
    for (int d = 0; d < DTYPE_COUNT; d++) {
        CHECK(strcmp(dtype_name((DType)d), rt_dtype_name((RtDType)d)) == 0);
        CHECK(dtype_bytes((DType)d) == rt_dtype_bytes((RtDType)d));
    }
    CHECK((int)TYPE_MAX_RANK == (int)RT_MAX_RANK);
}

int main(void)
{
    test_generator();
    test_types();
    return test_result();
}
