/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One bit an element: 32 to a word, the first in bit 0 (relu_mask in ir/ops.def). */
#ifndef SCRIMP_CODEGEN_CPU_POINT_RELU_MASK_H
#define SCRIMP_CODEGEN_CPU_POINT_RELU_MASK_H

#include "codegen/jit/jit.h"

/* Lanes of 0 / -1 from the bits of elements at, at + 1, ... (i64); n: how many there are (i64),
 * NULL = one for each lane.  words: a p_i32; only words that hold one of the bits are read. */
JitValue relu_mask_lanes(Jit *j, JitValue words, JitValue at, JitValue n);
/* The bit of element `at` in all lanes. */
JitValue relu_mask_one(Jit *j, JitValue words, JitValue at);

#endif
