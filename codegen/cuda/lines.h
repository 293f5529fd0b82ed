/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Kernels over lines of [outer, length, inner]: device/lines.cuh. */
#ifndef SCRIMP_CODEGEN_CUDA_LINES_H
#define SCRIMP_CODEGEN_CUDA_LINES_H

#include "codegen/forms/pod.h"

/* Threads that share a line: PARTIALS of device/line.cuh, EIGHT of device/runs.cuh. */
enum { LINE_THREADS = 64, RUN_THREADS = 8 };

/* How many blocks of block_lines * LINE_THREADS threads take the lines in turn; 0 where there is
 * nothing to do. */
int64_t lines_blocks(AxisShape a, int block_lines);
/* Appends the shape, what lines are shared by, "line" or "runs", and device/lines.cuh. */
void text_lines(StrBuf *out, AxisShape a, const char *sharing);

#endif
