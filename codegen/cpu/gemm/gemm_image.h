/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Products whose A is an image: its rows are what a window of the image has, for every place of the
 * window.  They are packed place by place, with zeros outside of the image. */
#ifndef SCRIMP_CODEGEN_CPU_GEMM_GEMM_IMAGE_H
#define SCRIMP_CODEGEN_CPU_GEMM_GEMM_IMAGE_H

#include "codegen/cpu/gemm/gemm_desc.h"
#include "codegen/jit/jit.h"

/* Steps of a block of K at most `most`, a multiple of 32: whole places, or an equal part of one. */
int64_t gemm_image_block(const GemmImage *x, int64_t most);
/* Steps that lie in one place: all of its channels, or those of a block of K. */
int64_t gemm_image_piece(const Gemm *g);

/* Puts `piece` steps of a row, from `step` of the block of K on; from: NULL: zeros. */
typedef void GemmImagePut(const void *user, JitValue row, JitValue step, JitValue from,
                          int64_t piece);
/* Rows [row0, row0 + rows) of A, `steps` from k0 on; a: its first element. */
void gemm_image_pack(Jit *j, const Gemm *g, JitValue a, JitValue row0, JitValue rows, JitValue k0,
                     JitValue steps, GemmImagePut *put, const void *user);

/* B's element (k, column), as an offset from its first one; k begins a piece. */
JitValue gemm_image_b(Jit *j, const Gemm *g, JitValue k, JitValue column);

#endif
