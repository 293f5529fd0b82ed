/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tensor types: element type and static shape.  Every tensor is dense and row-major. */
#ifndef SCRIMP_IR_TYPE_H
#define SCRIMP_IR_TYPE_H

#include "ir/support/pool.h"

enum { TYPE_MAX_RANK = 8 };

/* name as printed, enum suffix, bytes per element.  f16 is known to the type system; no operation
 * computes in it. */
#define DTYPES(X)                                                                                  \
    X(F32, f32, 4)                                                                                 \
    X(F16, f16, 2)                                                                                 \
    X(BF16, bf16, 2)                                                                               \
    X(I32, i32, 4)                                                                                 \
    X(I64, i64, 8)                                                                                 \
    X(U8, u8, 1)                                                                                   \
    X(BOOL, bool, 1)

typedef enum DType {
#define X(upper, lower, bytes) DTYPE_##upper,
    DTYPES(X)
#undef X
        DTYPE_COUNT
} DType;

typedef struct Type {
    DType dtype;
    int rank;
    int64_t dim[TYPE_MAX_RANK];
} Type;

const char *dtype_name(DType dtype);
int64_t dtype_bytes(DType dtype);
bool dtype_from_name(const char *name, DType *out);
bool dtype_is_float(DType dtype);
/* Whether operations compute in it: f32, and bf16, which is computed in f32 and rounded. */
bool dtype_is_real(DType dtype);

Type type_scalar(DType dtype);
Type type_make(DType dtype, int rank, const int64_t *dims);
bool type_equal(const Type *a, const Type *b);
bool type_same_shape(const Type *a, const Type *b);
/* Elements and bytes; shapes in a graph are checked for overflow when they are made (type_valid).
 */
int64_t type_elements(const Type *t);
int64_t type_bytes(const Type *t);
/* Rank in range, no negative dim, byte size within int64. */
bool type_valid(const Type *t);
/* "f32[32,64,56,56]"; a scalar is "f32[]". */
const char *type_text(Pool *pool, const Type *t);
/* Only the dims: "[32,64,56,56]". */
const char *type_shape_text(Pool *pool, const Type *t);
/* numpy broadcasting of two shapes (dtype of a); false when they do not fit. */
bool type_broadcast(const Type *a, const Type *b, Type *out);

#endif
