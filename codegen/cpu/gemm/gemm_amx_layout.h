/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How factors and sums of products by matrix registers lie in scratch memory: as squares, each what
 * one register holds, 16 rows of 64 bytes.  A square of A has 32 steps of 16 rows, one of B 16
 * pairs of steps of 16 columns; squares of the same rows or columns follow one another, step by
 * step. */
#ifndef SCRIMP_CODEGEN_CPU_GEMM_GEMM_AMX_LAYOUT_H
#define SCRIMP_CODEGEN_CPU_GEMM_GEMM_AMX_LAYOUT_H

#include "codegen/cpu/gemm/gemm_desc.h"
#include "codegen/jit/jit_amx.h"

enum {
    AMX_SIDE = 2 * AMX_ROWS, /* rows, and columns, of a tile: 2 x 2 registers of sums */
    AMX_SQUARE_BYTES = AMX_ROWS * AMX_ROW_BYTES,
    AMX_SQUARE_WORDS = AMX_SQUARE_BYTES / 2,
    AMX_TILE_FLOATS = AMX_SIDE * AMX_SIDE
};

/* Squares of 16 rows or columns over a block of K. */
static inline int64_t amx_squares(const Gemm *g)
{
    return g->k_block / AMX_STEPS;
}

/* Panels of B that are packed together: several where its rows are steps, so that pieces of them
 * are not too short. */
static inline int amx_panels_together(const Gemm *g)
{
    return g->b_k == 1 ? 1 : g->k_block > 512 ? 2 : 4;
}

#endif
