/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Convolutions that can apply element-wise operations to their image as they read it. */
#ifndef SCRIMP_IR_PROLOGUE_H
#define SCRIMP_IR_PROLOGUE_H

#include "ir/graph.h"

/* Elements of an image that are made at a time: of one piece at most, and of what is made together
 * where pieces are smaller. */
enum { PROLOGUE_ELEMENTS = 240 * 1024, PROLOGUE_TOGETHER = 120 * 1024 };

/* Rows of dy, of `ow` columns that `columns` columns of x lie under, which are a chain of a
 * window's weight gradient (codegen/forms/convolution.h). */
enum {
    CONV_BAND_PIXELS = 168,      /* a chain's rounding error grows with its length */
    CONV_BAND_BYTES = 256 * 1024 /* of a band's copied rows of x, unless it has one row */
};
int64_t conv_wgrad_band(int64_t ow, int64_t columns, int64_t channels);

/* A convolution, or weight gradient of one, whose first input may be made piece by piece: every
 * piece that its kernel reads, whatever the target, has at most PROLOGUE_ELEMENTS. */
bool conv_takes_prologue(const Graph *g, const Node *n);

#endif
