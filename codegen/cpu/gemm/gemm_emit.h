/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The code of a product under construction. */
#ifndef SCRIMP_CODEGEN_CPU_GEMM_GEMM_EMIT_H
#define SCRIMP_CODEGEN_CPU_GEMM_GEMM_EMIT_H

#include "codegen/cpu/gemm/gemm_ahead.h"
#include "codegen/cpu/gemm/gemm_run.h"

typedef struct GemmEmit {
    Jit *j;
    const Gemm *g;
    GemmRun run;
    JitValue k0, steps, first, last; /* the K block */
    JitValue packed_steps;           /* with zeros behind the last one, where there are pairs */
    JitValue packed_b, packed_a, partial; /* parts of scratch */
    Ahead next_a;                         /* of the K block behind this one, or of the next tile */
    Ahead next_b;                         /* that is packed when the panels from ahead0 are done */
    JitValue ahead0;                      /* NULL: nothing is asked for */
} GemmEmit;

/* Elements between packed rows of A, or between the strips of tiles. */
int64_t gemm_packed_a_stride(const Gemm *g);
/* Packed A lies tile by tile, in each step by step, where a step's rows are contiguous: a tile then
 * reads no line that others read, too.  Else it lies row by row. */
bool gemm_packs_strips(const Gemm *g);
/* A's element (row, k0), in place. */
JitValue gemm_a_in_place(const GemmEmit *e, JitValue row);
/* What the tile that begins with `row` reads of A from k0 on, packed or in place. */
JitValue gemm_a_of_tile(const GemmEmit *e, JitValue tile, JitValue row);
/* Packs the rows of the run, of this block of K. */
void gemm_pack_a(const GemmEmit *e);

#endif
