/* SPDX-License-Identifier: GPL-3.0-or-later */
/* NumPy's .npy, versions 1 to 3, little-endian C order.  Called by the data source npy and by
 * predict. */
#ifndef SCRIMP_RUNTIME_NPY_H
#define SCRIMP_RUNTIME_NPY_H

#include "runtime/dtype.h"
#include "runtime/file.h"

typedef enum NpyType {
    NPY_F2,
    NPY_BF16, /* only in safetensors: NumPy has no such type */
    NPY_F4,
    NPY_F8,
    NPY_I4,
    NPY_I8,
    NPY_U1,
    NPY_B1,
    NPY_TYPE_COUNT
} NpyType;
typedef struct NpyArray {
    NpyType type;
    int rank;
    int64_t dims[RT_MAX_RANK];
    const unsigned char *data; /* not necessarily aligned */
} NpyArray;

int64_t npy_type_bytes(NpyType type);
/* What its elements are read as: f32, i32, u8 or bool. */
RtDType npy_type_dtype(NpyType type);
bool npy_is_float(NpyType type);
/* data lies within bytes. */
bool npy_parse(const unsigned char *bytes, int64_t n, NpyArray *out, RtError *err);
/* Element i of an array that is not of floats. */
int64_t npy_integer(const NpyArray *a, int64_t i);
/* Smallest and largest element of such an array, those equal to *ignored (may be NULL) left out;
 * least is above most when none is left.  What does not fit 32 bits is refused. */
bool npy_range(const NpyArray *a, const int32_t *ignored, int64_t *least, int64_t *most,
               RtError *err);
/* Elements first .. first + n to dst: floats as f32, those of at most 32 bits exactly; others as
 * i32 when that is dtype, else bytes. */
void npy_copy(const NpyArray *a, int64_t first, int64_t n, RtDType dtype, void *dst);
/* The header of an array of f32, i32, u8 or bool, behind which its elements are to be written. */
bool npy_write_header(AtomicFile *file, RtDType dtype, int rank, const int64_t *dims, RtError *err);

#endif
