/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which convolutions, and data gradients, are products of the weights as they lie with columns of
 * the image, [pixels of the result][r][s][c] (codegen/cpu/conv/conv_columns.c): those of images so
 * small that packing the weights would take longer. */
#ifndef SCRIMP_IR_CONV_COLUMNS_H
#define SCRIMP_IR_CONV_COLUMNS_H

#include "ir/graph.h"

/* Floats behind each row of columns: rows a multiple of 2 KiB apart would collide in a cache. */
enum { CONV_COLUMNS_PAD = 16 };

/* Floats of the columns of a conv2d, conv2d_dgrad or deconv2d, which are in the workspace in the
 * place of packed weights: at most about as many as there are weights.  0: it has none. */
int64_t conv_columns_floats(const Graph *g, const Node *n);

#endif
