/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layer norm over the last axis, with or without (rms) subtracting the mean, and its gradient in
 * the input. */
#ifndef SCRIMP_CODEGEN_FORMS_LAYERNORM_H
#define SCRIMP_CODEGEN_FORMS_LAYERNORM_H

#include "codegen/forms/pod.h"

KERNEL_DESC_BEGIN
typedef struct LayernormDesc {
    int64_t rows, length;
    int64_t gamma, beta, rms; /* flags */
    double eps;
} LayernormDesc;
KERNEL_DESC(LayernormDesc)

LayernormDesc layernorm_describe(const Lowering *l, const Node *n);

#endif
