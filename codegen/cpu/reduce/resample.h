/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the outputs of pooling and resizing read; resample_taps.c. */
#ifndef SCRIMP_CODEGEN_CPU_REDUCE_RESAMPLE_H
#define SCRIMP_CODEGEN_CPU_REDUCE_RESAMPLE_H

#include "codegen/cpu/point/vector_loops.h"

KERNEL_DESC_BEGIN
/* from, to: what the forward operation reads and writes; in, out: what this one does. */
typedef struct ResampleDesc {
    int64_t op, images, channels, nearest, align_corners;
    int64_t from[2], to[2], in[2], out[2];
    int64_t kernel[2], stride[2], padding[2], count_pad; /* average pooling that is not adaptive */
    int64_t block, direct;                               /* channels of a task; no scratch */
} ResampleDesc;
KERNEL_DESC(ResampleDesc)

/* Output i of an axis reads elements first[i] .. first[i] + (end[i] - end[i-1]) - 1, with the
 * weights from end[i-1] on: consecutive elements, because both ends of what is read never fall. */
typedef struct Taps {
    int64_t n, *shift, *end; /* shift[i] = first[i] - end[i-1]; end has n+1 elements, end[0] = 0 */
    float *weight;
    int64_t longest; /* most taps of one output */
    bool copies;     /* one tap of weight 1 each */
} Taps;

/* What one forward output reads; weight of the first element, and of each further one. */
typedef struct Reads {
    int64_t first, count;
    double weight[2];
} Reads;

bool resample_is_gradient(const ResampleDesc *d);
/* What output i of the forward operation reads along an axis. */
Reads resample_reads(const ResampleDesc *d, int axis, int64_t i);
/* Of the rows (axis 0) or columns of what this operation writes. */
Taps resample_taps(Pool *pool, const ResampleDesc *d, int axis);

#endif
