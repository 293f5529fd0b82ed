/* SPDX-License-Identifier: GPL-3.0-or-later */
/* conv2d, its gradients, and deconv2d, which is a data gradient: their geometry, and the order of
 * every sum.  The form is chosen by the sizes alone, so that every backend that keeps to the order
 * has the same bits, on every processor whose steps are fused multiply-adds.  By pairs
 * (ir/product.h) it is another order.
 *
 * CONV_PRODUCT: a matrix product, product.h.
 *
 * Results and data gradients go over kernel rows, kernel columns, and the channels of the group
 * that is summed over, in one chain of steps from zero.  For a data gradient, kernel places that no
 * place of dy reaches are no steps.
 * - CONV_WINDOW goes over the kernel in the order of the source's places, which is backwards for a
 *   data gradient; outside of the source there are zeros.  Places or rows of the kernel with many
 *   steps are chains of their own (conv_chains), added in order.
 * - CONV_NARROW does so, too; outside of the source there are no steps.
 * - CONV_PLAIN goes over the kernel forwards; outside of the source there are no steps.
 *
 * Weight gradients are sums over the pixels of dy: images, rows, columns.
 * - CONV_WINDOW cuts the rows of dy, images after one another, into conv_wgrad_chunks
 * (ir/workspace.h) nearly equal chunks, and a chunk into bands of conv_band_rows; a band is a chain
 * from zero, with zeros outside of the image, and bands are added in order.  More than one chunk
 * are joined.
 * - CONV_NARROW has conv_narrow_chunks; each is a chain from zero, without steps outside of the
 *   image.  They always are joined.
 * - CONV_PLAIN has one chain, without steps outside of the image.
 * Joined: added in order from zero by compensated sums (codegen/cuda/device/join.cuh). */
#ifndef SCRIMP_CODEGEN_FORMS_CONVOLUTION_H
#define SCRIMP_CODEGEN_FORMS_CONVOLUTION_H

#include "codegen/forms/product.h"
#include "ir/workspace.h"

typedef enum ConvPart { CONV_FORWARD, CONV_DGRAD, CONV_WGRAD } ConvPart;
/* Which of them a convolution's operation is. */
ConvPart conv_part(OpKind op);
typedef enum ConvForm { CONV_PRODUCT, CONV_NARROW, CONV_WINDOW, CONV_PLAIN } ConvForm;

/* The forward convolution that a node belongs to.  x [images, h, w, c], y [images, oh, ow, k],
 * weights [r, s, c / groups, k], or NCHW and OIHW. */
KERNEL_DESC_BEGIN
typedef struct ConvGeometry {
    int64_t images, h, w, c, oh, ow, k, r, s, groups;
    int64_t stride[2], pad[2], dilation[2];
    bool nhwc;
    bool bf16; /* the image that is read: f32 copies are made of it, it is never read in place */
    char unused[6];
} ConvGeometry;
KERNEL_DESC(ConvGeometry)

ConvGeometry conv_geometry(const MatrixNode *m, ConvPart part);

static inline int64_t conv_group_in(const ConvGeometry *q)
{
    return q->c / q->groups;
}
static inline int64_t conv_group_out(const ConvGeometry *q)
{
    return q->k / q->groups;
}

/* One axis of a pass: result place first + i * step for i < count reads source places origin + i *
 * source_step + t * tap_step for its taps t, those in [0, source). */
typedef struct ConvAxis {
    int64_t source, result;
    int64_t count, first, step;
    int64_t origin, source_step;
    int64_t taps, tap_step;
    int64_t weight_first, weight_step; /* tap t uses weight weight_first + t * weight_step */
} ConvAxis;

/* The axis of the forward pass, and of the data gradient's places that are `phase` modulo the
 * stride. */
ConvAxis conv_forward_axis(const ConvGeometry *q, int axis);
ConvAxis conv_gradient_axis(const ConvGeometry *q, int axis, int64_t phase);
/* All places of the source under the result lie within it. */
bool conv_axis_inside(const ConvAxis *x);
/* Source places that `count` results reach, from the first to the last. */
int64_t conv_axis_span(const ConvAxis *x, int64_t count);

ConvForm conv_form(const ConvGeometry *q, ConvPart part);
/* Of groups that CONV_NARROW would take if vectors were wider. */
ConvForm conv_wide_form(const ConvGeometry *q, ConvPart part);
/* The product of CONV_PRODUCT. */
Product conv_product(const ConvGeometry *q, ConvPart part);

/* CONV_WINDOW: what is a chain of its own; the rounding error of a sum grows with its longest one.
 */
typedef enum ConvChains { CONV_ONE_CHAIN, CONV_ROW_CHAINS, CONV_PLACE_CHAINS } ConvChains;
ConvChains conv_chains(const ConvGeometry *q, ConvPart part);
/* CONV_WINDOW.  Floats between pixels of a copy of the source: pixels a multiple of 2 KiB apart
 * collide in a cache. */
int64_t conv_pixel_floats(int64_t channels);
int64_t conv_band_rows(const ConvGeometry *q);
/* Columns of x under one row of dy. */
int64_t conv_x_columns(const ConvGeometry *q);

/* CONV_NARROW: at most DEPTHWISE_CHUNKS (ir/workspace.h), 0 without pixels. */
int64_t conv_narrow_chunks(const ConvGeometry *q);
enum { CONV_NARROW_TAPS = 32 }; /* of a row of taps, times channels of a group, at most */

double conv_flops(const ConvGeometry *q);
const char *conv_label(Pool *pool, const char *what, const ConvGeometry *q);

#endif
