/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Convolutions that can apply element-wise operations to their image as they read it. */
#ifndef SCRIMP_IR_PROLOGUE_H
#define SCRIMP_IR_PROLOGUE_H

#include "ir/graph.h"

/* Elements of an image that are made at a time: of one piece at most, and of what is made together
 * where pieces are smaller. */
enum { PROLOGUE_ELEMENTS = 240 * 1024, PROLOGUE_TOGETHER = 120 * 1024 };

/* A convolution, or weight gradient of one, whose first input may be made piece by piece: every
 * piece that its kernel reads, whatever the target, has at most PROLOGUE_ELEMENTS. */
bool conv_takes_prologue(const Graph *g, const Node *n);

#endif
