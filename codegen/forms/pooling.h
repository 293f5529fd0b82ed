/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Max pooling, the index of what it takes, and the gradients of both.  NCHW images are NHWC images
 * of one channel, N*C of them. */
#ifndef SCRIMP_CODEGEN_FORMS_POOLING_H
#define SCRIMP_CODEGEN_FORMS_POOLING_H

#include "codegen/build/kernel.h"

KERNEL_DESC_BEGIN
/* h, w: the forward operation's input's size, oh, ow: its output's. */
typedef struct PoolDesc {
    int64_t images, channels, h, w, oh, ow;
    int64_t kernel[2], stride[2], padding[2];
} PoolDesc;
KERNEL_DESC(PoolDesc)

PoolDesc pool_describe(const Lowering *l, const Node *n);

#endif
