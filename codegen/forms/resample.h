/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Average pooling, adaptive or not, resizing and their gradients.  All are linear and separable: an
 * output row is a weighted sum of input rows, an output pixel a weighted sum of pixels of that row.
 * The taps of an axis - which elements an output reads, and their weights - are tables; a gradient
 * gathers by the transposed tables, so nothing is scattered.
 *
 * Every sum begins with zero and is a chain of fused multiply-adds in the order of the taps; of
 * more than UNBLOCKED_TAPS it adds up blocks, each from zero.  The input rows are added first, then
 * the columns of what that gives; where `direct` says so, both at once, a row after the other, each
 * with the product of both weights.  NCHW images are NHWC images of one channel, N*C of them. */
#ifndef SCRIMP_CODEGEN_FORMS_RESAMPLE_H
#define SCRIMP_CODEGEN_FORMS_RESAMPLE_H

#include "codegen/build/kernel.h"

KERNEL_DESC_BEGIN
/* from, to: what the forward operation reads and writes; in, out: what this one does. */
typedef struct ResampleDesc {
    int64_t op, images, channels, nearest, align_corners;
    int64_t from[2], to[2], in[2], out[2];
    int64_t kernel[2], stride[2], padding[2], count_pad; /* average pooling that is not adaptive */
    int64_t direct;
} ResampleDesc;
KERNEL_DESC(ResampleDesc)

/* Channels that a line of input pixels is added up for at a time, at least; bytes of such a line
 * that may be read past its end. */
enum { RESAMPLE_CHANNELS = 16, RESAMPLE_SLACK = 64 };

/* Output i of an axis reads elements first[i] .. first[i] + (end[i] - end[i-1]) - 1, with the
 * weights from end[i-1] on: consecutive elements, because both ends of what is read never fall. */
typedef struct Taps {
    int64_t n, *shift, *end; /* shift[i] = first[i] - end[i-1]; end has n+1 elements, end[0] = 0 */
    float *weight;
    int64_t longest; /* most taps of one output */
    int64_t block;   /* taps that are added up before they join the sum; 0: all */
    bool copies;     /* one tap of weight 1 each */
} Taps;

ResampleDesc resample_describe(const Lowering *l, const Node *n);
/* Of the rows (axis 0) or columns of what this operation writes. */
Taps resample_taps(Pool *pool, const ResampleDesc *d, int axis);

#endif
