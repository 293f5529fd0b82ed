/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Copies that put operands of matrix kernels into the order in which the register tile reads them.
 * Sources are f32 or bf16, as their pointers say; what is packed is f32. */
#ifndef SCRIMP_CODEGEN_CPU_GEMM_GEMM_PACK_H
#define SCRIMP_CODEGEN_CPU_GEMM_GEMM_PACK_H

#include "codegen/cpu/gemm/gemm_tile.h"

/* A panel [steps][vectors * lanes] made of source element (k, n) at k * k_step + n * n_step;
 * columns past `columns` are padding (zero, or whatever follows in the source: nothing depends on
 * them). */
typedef struct PackPanel {
    int vectors;
    int64_t columns;
    int64_t k_step, n_step;
} PackPanel;

/* to: vector-aligned.  safe: the first so many steps (i64, may be negative) whose last vector may
 * be read in whole without leaving the source; NULL = all; it matters only when n_step is 1 and
 * columns is no multiple of the lanes. */
void pack_panel(Jit *j, const PackPanel *p, JitValue to, JitValue from, JitValue steps,
                JitValue safe);

/* The same for `panels` (i64) whole panels side by side, one behind the other in `to`; n_step must
 * be 1 and columns whole vectors.  Goes along the rows of the source: short pieces of far rows
 * would miss the cache and the TLB. */
void pack_panels(Jit *j, const PackPanel *p, JitValue to, JitValue from, JitValue steps,
                 JitValue panels);

/* to[r * to_step + i] = from[r * from_step + i] for r < rows, i < n (i64 values, elements f32). */
void pack_rows(Jit *j, JitValue to, JitValue to_step, JitValue from, JitValue from_step,
               JitValue rows, JitValue n);

/* to[r * to_step + k] = from[r * row_step + k * k_step] for r < rows, k < steps, one by one. */
void pack_gather(Jit *j, JitValue to, JitValue to_step, JitValue from, int64_t row_step,
                 int64_t k_step, JitValue rows, JitValue steps);

/* Rows of a matrix by row tiles: those of a tile, `width` at most, step by step. */
typedef struct PackStrips {
    TileSplit rows;
    int64_t width;      /* floats between steps of a strip */
    int64_t strip_step; /* between strips: room for all steps and a vector more */
    int64_t k_step;     /* of the source, whose rows are contiguous */
} PackStrips;

/* The strips of tiles [tile0, tile1); from: the first step of all rows. */
void pack_strips(Jit *j, const PackStrips *p, JitValue to, JitValue from, JitValue steps,
                 JitValue tile0, JitValue tile1);

/* row[0..lanes), vectors of f32, as a square matrix is transposed in place; each row a temporary.
 */
void pack_transpose(Jit *j, JitValue *row);

/* Each of n floats becomes the nearest bf16, a denormal number 0; up to a vector behind them, too.
 */
void pack_round(Jit *j, JitValue to, JitValue n);

/* to[i] = 0 for i < n. */
void pack_zero(Jit *j, JitValue to, JitValue n);

#endif
