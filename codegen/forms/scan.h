/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sums and products along the lines of [outer, length, inner], and the gradients of products.  A
 * line is walked from one end to the other, in double (integers: in 64 bits), and every result is
 * rounded once: the order, and so the bits, are the same everywhere. */
#ifndef SCRIMP_CODEGEN_FORMS_SCAN_H
#define SCRIMP_CODEGEN_FORMS_SCAN_H

#include "codegen/forms/pod.h"

KERNEL_DESC_BEGIN
typedef struct ScanDesc {
    AxisShape shape;
    int64_t op;                          /* OpKind */
    int64_t integer, reverse, exclusive; /* flags */
} ScanDesc;
KERNEL_DESC(ScanDesc)

ScanDesc scan_describe(const Lowering *l, const Node *n);

#endif
