/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/type.h"

#include "ir/support/strbuf.h"

#include <inttypes.h>
#include <string.h>

static const struct {
    const char *name;
    int64_t bytes;
} dtypes[DTYPE_COUNT] = {
#define X(upper, lower, n_bytes) {#lower, n_bytes},
    DTYPES(X)
#undef X
};

const char *dtype_name(DType dtype)
{
    return dtypes[dtype].name;
}

int64_t dtype_bytes(DType dtype)
{
    return dtypes[dtype].bytes;
}

bool dtype_from_name(const char *name, DType *out)
{
    for (int i = 0; i < DTYPE_COUNT; i++) {
        if (strcmp(dtypes[i].name, name) == 0) {
            *out = (DType)i;
            return true;
        }
    }
    return false;
}

bool dtype_is_float(DType dtype)
{
    return dtype == DTYPE_F32 || dtype == DTYPE_F16 || dtype == DTYPE_BF16;
}

bool dtype_is_real(DType dtype)
{
    return dtype == DTYPE_F32 || dtype == DTYPE_BF16;
}

Type type_scalar(DType dtype)
{
    return (Type){.dtype = dtype};
}

Type type_make(DType dtype, int rank, const int64_t *dims)
{
    Type t = {.dtype = dtype, .rank = rank};
    for (int i = 0; i < rank && i < TYPE_MAX_RANK; i++)
        t.dim[i] = dims[i];
    return t;
}

bool type_same_shape(const Type *a, const Type *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

bool type_equal(const Type *a, const Type *b)
{
    return a->dtype == b->dtype && type_same_shape(a, b);
}

int64_t type_elements(const Type *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= t->dim[i];
    return n;
}

int64_t type_bytes(const Type *t)
{
    return type_elements(t) * dtype_bytes(t->dtype);
}

bool type_valid(const Type *t)
{
    if (t->rank < 0 || t->rank > TYPE_MAX_RANK || (unsigned)t->dtype >= DTYPE_COUNT)
        return false;
    /* A zero dim must not hide an overflow of the others: strides are computed from them too. */
    int64_t bytes = dtype_bytes(t->dtype);
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] < 0 || !size_mul(bytes, t->dim[i] ? t->dim[i] : 1, &bytes))
            return false;
    return true;
}

const char *type_shape_text(Pool *pool, const Type *t)
{
    StrBuf b = strbuf_new(pool);
    strbuf_put(&b, "[");
    for (int i = 0; i < t->rank; i++)
        strbuf_printf(&b, i ? ",%" PRId64 : "%" PRId64, t->dim[i]);
    strbuf_put(&b, "]");
    return b.text;
}

const char *type_text(Pool *pool, const Type *t)
{
    return pool_printf(pool, "%s%s", dtype_name(t->dtype), type_shape_text(pool, t));
}

bool type_broadcast(const Type *a, const Type *b, Type *out)
{
    Type r = {.dtype = a->dtype, .rank = a->rank > b->rank ? a->rank : b->rank};
    for (int i = 1; i <= r.rank; i++) {
        int64_t da = i <= a->rank ? a->dim[a->rank - i] : 1;
        int64_t db = i <= b->rank ? b->dim[b->rank - i] : 1;
        if (da != db && da != 1 && db != 1)
            return false;
        r.dim[r.rank - i] = da == 1 ? db : da;
    }
    *out = r;
    return true;
}
