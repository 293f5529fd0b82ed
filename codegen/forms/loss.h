/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What cross-entropy, its gradient and accuracy are: lines of logits, each compared with its label.
 * Logits are [outer, classes, inner], labels [outer, inner].  A label that is `ignore`, or no class
 * at all, takes no part. */
#ifndef SCRIMP_CODEGEN_FORMS_LOSS_H
#define SCRIMP_CODEGEN_FORMS_LOSS_H

#include "codegen/forms/pod.h"

enum { LOSS_MEAN, LOSS_SUM, LOSS_NONE };

/* The gradient of a weighted mean counts the weight of label i in partial sum i modulo this, in
 * double; they are added in order. */
enum { LOSS_WEIGHT_SUMS = 512 };

KERNEL_DESC_BEGIN
typedef struct LossDesc {
    int64_t outer, classes, inner;
    int64_t label_type, ignore, chunks, partial_bytes;
    int64_t weighted, reduction;
    double smoothing;
} LossDesc;
KERNEL_DESC(LossDesc)

LossDesc loss_describe(const Lowering *l, const Node *n);

#endif
