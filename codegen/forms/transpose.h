/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Transposition.  After merging dims that stay together, a permutation either keeps the last dim -
 * rows are copied by an element-wise program - or moves it: then squares of the two contiguous dims
 * are transposed. */
#ifndef SCRIMP_CODEGEN_FORMS_TRANSPOSE_H
#define SCRIMP_CODEGEN_FORMS_TRANSPOSE_H

#include "codegen/forms/pod.h"

KERNEL_DESC_BEGIN
/* Output dims; the input's strides along them.  The last dim is contiguous in the output, dim
 * `lead` in the input. */
typedef struct TransposeDesc {
    int64_t rank, lead, bytes;
    int64_t dim[TYPE_MAX_RANK], in[TYPE_MAX_RANK], out[TYPE_MAX_RANK];
} TransposeDesc;
KERNEL_DESC(TransposeDesc)

TransposeDesc transpose_describe(const Lowering *l, const Node *n);
/* The last dim stays the last. */
bool transpose_keeps_rows(const TransposeDesc *d);
/* Adds the element-wise program that does any transposition, and is the best one for rows. */
void transpose_copy(Lowering *l, const Node *n, const TransposeDesc *d);
/* Squares of side `side` along dim k, and of all dims together. */
int64_t transpose_squares(const TransposeDesc *d, int64_t k, int64_t side);
int64_t transpose_all_squares(const TransposeDesc *d, int64_t side);

#endif
