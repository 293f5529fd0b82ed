/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The order of a matrix product's sum, for everything that has to know: shapes, passes, kernels.
 *
 * With the attribute `pairs`, both factors are bf16: f32 is rounded to it, and what is below 2^-126
 * before that is 0.  The sum begins with +0, and for every PRODUCT_PAIRS_STEPS steps two chains of
 * multiply-adds are made, each from +0, one over the even steps and one over the odd ones; their
 * sum is added to what is there.  Steps behind the last one are products of zeros.  This is how
 * TDPBF16PS adds, of Intel's Advanced Matrix Extensions (Intel 64 and IA-32 Architectures Software
 * Developer's Manual, volume 2). */
#ifndef SCRIMP_IR_PRODUCT_H
#define SCRIMP_IR_PRODUCT_H

#include "ir/graph.h"

/* A chain of multiply-adds has so many steps at most: its rounding error grows with its length. */
enum { PRODUCT_CHAIN = 256 };
enum { PRODUCT_PAIRS_STEPS = 32 };

/* A convolution (NHWC), or a gradient of one, by 1x1 without stride, padding or groups: every pixel
 * of one image meets that of the other alone. */
bool conv_is_pointwise(const Graph *g, const Node *n);

/* Sides of one matrix of a product. */
typedef struct ProductSides {
    int64_t rows, columns, steps;
} ProductSides;
/* False where the node is none: a matmul, a linear, or, of images [N,H,W,C] without groups, a
 * convolution or gradient by 1x1 without stride or padding, or a convolution, or a data gradient
 * without a stride, that reads a multiple of 32 channels. */
bool product_sides(const Graph *g, const Node *n, ProductSides *out);

#endif
