/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/dtype.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int64_t bytes;
} dtypes[RT_DTYPE_COUNT] = {
    [RT_F32] = {"f32", 4},   [RT_F16] = {"f16", 2}, [RT_BF16] = {"bf16", 2},
    [RT_I32] = {"i32", 4},   [RT_I64] = {"i64", 8}, [RT_U8] = {"u8", 1},
    [RT_BOOL] = {"bool", 1}, [RT_F64] = {"f64", 8}, [RT_OTHER] = {"other", 0},
};

int64_t rt_dtype_bytes(RtDType dtype)
{
    return dtypes[dtype].bytes;
}

const char *rt_dtype_name(RtDType dtype)
{
    return dtypes[dtype].name;
}

bool rt_elements(int rank, const int64_t *dims, int64_t *out)
{
    int64_t n = 1;
    bool zero = false; /* a zero dim hides no negative or overflowing neighbour */
    for (int i = 0; i < rank; i++) {
        if (dims[i] == 0)
            zero = true;
        else if (!rt_mul(n, dims[i], &n))
            return false;
    }
    *out = zero ? 0 : n;
    return true;
}

void rt_shape_text(int rank, const int64_t *dims, char *text, size_t size)
{
    size_t len = 0;
    for (int i = 0; i <= rank && len < size; i++) {
        int n = i == rank
                    ? snprintf(text + len, size - len, rank ? "]" : "[]")
                    : snprintf(text + len, size - len, "%c%lld", i ? ',' : '[', (long long)dims[i]);
        len += n > 0 ? (size_t)n : 0;
    }
}

static float float_from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

float rt_bf16_to_f32(uint16_t h)
{
    return float_from_bits((uint32_t)h << 16);
}

float rt_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    uint32_t exponent = h >> 10 & 0x1fu, fraction = h & 0x3ffu;
    if (exponent == 31) /* infinity, NaN */
        return float_from_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0) { /* zero, subnormal: fraction * 2^-24 */
        float magnitude = (float)fraction * 0x1p-24f;
        return sign ? -magnitude : magnitude;
    }
    return float_from_bits(sign | (exponent + 112) << 23 | fraction << 13);
}
