/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Element-wise operations in front of a matrix operation of their group: their result is made piece
 * by piece, in the strip memory of the thread that reads it, and is no tensor.  The kernel that
 * reads it is as it would be without them: for every piece (codegen/build/spans.h) it is called
 * with an address at which the elements of the piece are where it expects them. */
#ifndef SCRIMP_CODEGEN_CPU_POINT_PROLOGUE_H
#define SCRIMP_CODEGEN_CPU_POINT_PROLOGUE_H

#include "codegen/build/kernel.h"
#include "ir/prologue.h"

enum { PROLOGUE_AT_ONCE = 32 * 1024, PROLOGUE_BAND = 64 * 1024 };
_Static_assert(4 * PROLOGUE_ELEMENTS <= SCRIMP_STRIP_BYTES, "a piece of an image does not fit");

/* Of the calls from `first` on, those of a fused node, the one that reads what the group makes for
 * it becomes one that makes it, too. */
void prologue_lower(Lowering *l, const Node *fused, size_t first);

#endif
