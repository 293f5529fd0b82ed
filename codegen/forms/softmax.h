/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Softmax, log-softmax and their gradients: lines of [outer, length, inner]. */
#ifndef SCRIMP_CODEGEN_FORMS_SOFTMAX_H
#define SCRIMP_CODEGEN_FORMS_SOFTMAX_H

#include "codegen/forms/pod.h"

KERNEL_DESC_BEGIN
typedef struct SoftmaxDesc {
    int64_t outer, length, inner;
    int64_t log, grad; /* flags */
} SoftmaxDesc;
KERNEL_DESC(SoftmaxDesc)

SoftmaxDesc softmax_describe(const Lowering *l, const Node *n);

#endif
