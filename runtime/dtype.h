/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Element types as the runtime knows them.  The first seven are ir/type.h's DTYPES in the same
 * order (a property test compares them), so that a caller may cast. */
#ifndef SCRIMP_RUNTIME_DTYPE_H
#define SCRIMP_RUNTIME_DTYPE_H

#include "runtime/status.h"

typedef enum RtDType {
    RT_F32,
    RT_F16,
    RT_BF16,
    RT_I32,
    RT_I64,
    RT_U8,
    RT_BOOL,
    RT_F64,   /* only in files */
    RT_OTHER, /* only in files: a known size, no conversion */
    RT_DTYPE_COUNT
} RtDType;

enum { RT_MAX_RANK = 8 };

/* Bytes per element; 0 for RT_OTHER. */
int64_t rt_dtype_bytes(RtDType dtype);
/* "f32", "i32", ...; "other" for RT_OTHER. */
const char *rt_dtype_name(RtDType dtype);
/* Product of the dims, 1 for a scalar; false on a negative dim or overflow. */
bool rt_elements(int rank, const int64_t *dims, int64_t *out);
/* "[64,3,7,7]" into text (cut when it does not fit). */
void rt_shape_text(int rank, const int64_t *dims, char *text, size_t size);
/* IEEE half and bfloat16 to float, exactly. */
float rt_f16_to_f32(uint16_t h);
float rt_bf16_to_f32(uint16_t h);

#endif
