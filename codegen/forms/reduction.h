/* SPDX-License-Identifier: GPL-3.0-or-later */
/* sum, mean, reduce_max and sumsq over any axes.
 *
 * Neighbouring axes of one kind are merged.  A chunked reduction (ir/workspace.h) computes partial
 * results in the workspace, which a second call joins in order. */
#ifndef SCRIMP_CODEGEN_FORMS_REDUCTION_H
#define SCRIMP_CODEGEN_FORMS_REDUCTION_H

#include "codegen/forms/pod.h"

enum { REDUCE_DIMS = TYPE_MAX_RANK };

KERNEL_DESC_BEGIN
/* Mixed-base numbers: element i of the set is at the sum of its digits times the strides. */
typedef struct Digits {
    int64_t n; /* dims in use */
    int64_t dim[REDUCE_DIMS], stride[REDUCE_DIMS];
    int64_t count;
} Digits;

typedef struct ReduceDesc {
    Digits kept, reduced;                   /* without the last dim */
    int64_t inner, inner_kept;              /* size of the last dim; flag */
    int64_t results, chunks, partial_bytes; /* chunks: 0 = each result alone */
    int64_t op;                             /* OpKind */
    int64_t dtype;
    double scale;
} ReduceDesc;
KERNEL_DESC(ReduceDesc)

ReduceDesc reduce_describe(const Lowering *l, const Node *n);
void reduce_add_digit(Digits *set, int64_t dim, int64_t stride);

#endif
