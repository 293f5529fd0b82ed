/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What ReLU's gradient needs of a tensor: one bit an element. */
#ifndef SCRIMP_CODEGEN_FORMS_RELU_MASK_H
#define SCRIMP_CODEGEN_FORMS_RELU_MASK_H

#include "codegen/build/kernel.h"

enum { MASK_WORD_BITS = 32 };

KERNEL_DESC_BEGIN
typedef struct ReluMaskDesc {
    int64_t elements;
    int64_t row, pitch; /* elements of a row, and from one row to the next; row 0: dense */
} ReluMaskDesc;
KERNEL_DESC(ReluMaskDesc)

ReluMaskDesc relu_mask_describe(const Lowering *l, const Node *n);

#endif
