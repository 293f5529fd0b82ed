/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Two sums over everything but one axis: the statistics of batch norm, and the parameter gradients
 * of batch norm and layer norm.  The input is [outer, channels, inner].  Partial results
 * (reduce_chunks) go to the workspace as f32 first[C], second[C]; a second call joins them in
 * order.
 *
 * Statistics are numerically sound for any offset of the data: all sums are of differences from the
 * channel's first element in the chunk.  A chunk gives the mean of these and the sum of squared
 * deviations; chunks are joined as by Chan, Golub and LeVeque (1983).  A chunk that
 * is not empty reads its own elements alone. */
#ifndef SCRIMP_CODEGEN_FORMS_MOMENTS_H
#define SCRIMP_CODEGEN_FORMS_MOMENTS_H

#include "codegen/build/kernel.h"

KERNEL_DESC_BEGIN
typedef struct MomentsDesc {
    int64_t op, outer, channels, inner, chunks, partial_bytes;
    int64_t pitch[2]; /* elements between rows of the images, with inner = 1 */
    double eps;
} MomentsDesc;
KERNEL_DESC(MomentsDesc)

MomentsDesc moments_describe(const Lowering *l, const Node *n);
/* Inputs of the full shape: x, or dy and x. */
int moments_images(const MomentsDesc *d);
/* Buffers of both calls: the inputs, the workspace (its number is returned), the two results. */
int moments_bufs(const Lowering *l, const Node *n, CallBuf *bufs);

#endif
