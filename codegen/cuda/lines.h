/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Kernels over lines of [outer, length, inner]: device/lines.cuh. */
#ifndef SCRIMP_CODEGEN_CUDA_LINES_H
#define SCRIMP_CODEGEN_CUDA_LINES_H

#include "codegen/forms/pod.h"

enum { LINE_THREADS = 64 }; /* PARTIALS of device/line.cuh */

/* How many blocks of block_lines * LINE_THREADS threads take the lines in turn; 0 where there is
 * nothing to do. */
int64_t lines_blocks(AxisShape a, int block_lines);
/* Appends the shape and device/lines.cuh, which wants device/line.cuh before it. */
void text_lines(StrBuf *out, AxisShape a);

#endif
