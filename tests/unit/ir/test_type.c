/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "check.h"
#include "ir/type.h"

#include <string.h>

static Type make(DType dtype, int rank, int64_t a, int64_t b, int64_t c)
{
    const int64_t dims[3] = {a, b, c};
    return type_make(dtype, rank, dims);
}

static void check_broadcast(Type a, Type b, const char *expected, Pool *pool)
{
    Type out;
    const char *got = type_broadcast(&a, &b, &out) ? type_text(pool, &out) : "no";
    CHECK_MSG(strcmp(got, expected) == 0, "%s, expected %s", got, expected);
}

int main(void)
{
    Pool *pool = pool_new();
    DType d;
    CHECK(dtype_from_name("bf16", &d) && d == DTYPE_BF16 && dtype_bytes(d) == 2);
    CHECK(!dtype_from_name("f64", &d) && !dtype_from_name("", &d));
    CHECK(dtype_is_float(DTYPE_F16) && !dtype_is_float(DTYPE_BOOL));

    Type t = make(DTYPE_F32, 3, 2, 3, 4), s = type_scalar(DTYPE_I64);
    CHECK(type_elements(&t) == 24 && type_bytes(&t) == 96);
    CHECK(type_elements(&s) == 1 && type_bytes(&s) == 8);
    CHECK(strcmp(type_text(pool, &t), "f32[2,3,4]") == 0);
    CHECK(strcmp(type_text(pool, &s), "i64[]") == 0);
    CHECK(strcmp(type_shape_text(pool, &t), "[2,3,4]") == 0);

    Type other = make(DTYPE_I32, 3, 2, 3, 4);
    CHECK(type_same_shape(&t, &other) && !type_equal(&t, &other));
    other.rank = 2;
    CHECK(!type_same_shape(&t, &other));

    check_broadcast(t, make(DTYPE_F32, 1, 4, 0, 0), "f32[2,3,4]", pool);
    check_broadcast(make(DTYPE_F32, 2, 3, 1, 0), t, "f32[2,3,4]", pool);
    check_broadcast(make(DTYPE_F32, 2, 2, 4, 0), t, "no", pool);
    check_broadcast(s, s, "i64[]", pool);

    /* 2^61 elements of 4 bytes are 2^63 bytes: one too many. */
    Type edge = make(DTYPE_F32, 2, (int64_t)1 << 60, 2, 0);
    CHECK(!type_valid(&edge));
    edge.dtype = DTYPE_U8;
    CHECK(type_valid(&edge));
    Type hidden = make(DTYPE_U8, 3, INT64_MAX, 0, 2);
    CHECK(!type_valid(&hidden));
    Type negative = make(DTYPE_F32, 1, -1, 0, 0);
    CHECK(!type_valid(&negative));
    Type deep = {.rank = TYPE_MAX_RANK + 1};
    CHECK(!type_valid(&deep));
    Type unknown = {.dtype = DTYPE_COUNT};
    CHECK(!type_valid(&unknown));
    CHECK(type_valid(&t) && type_valid(&s));
    pool_free(pool);
    return test_result();
}
