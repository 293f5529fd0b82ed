/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the plan of a product by matrix registers and its code have to agree on. */
#ifndef SCRIMP_CODEGEN_CPU_GEMM_GEMM_AMX_LAYOUT_H
#define SCRIMP_CODEGEN_CPU_GEMM_GEMM_AMX_LAYOUT_H

#include "codegen/cpu/gemm/gemm_desc.h"
#include "codegen/jit/jit_amx.h"

enum { AMX_TILE = 2 * AMX_ROWS }; /* rows, and columns, of a tile */

/* Whether the steps of the last block of K fill registers in part. */
static inline bool amx_odd_steps(const Gemm *g)
{
    return g->k % AMX_STEPS != 0;
}

/* 16-bit words of a packed row of A: rows do not fall into the same sets of a cache. */
static inline int64_t amx_line_words(const Gemm *g)
{
    return g->k_block + AMX_STEPS;
}

/* Of the last block of K, where A is packed only for it. */
static inline int64_t amx_last_line_words(const Gemm *g)
{
    int64_t steps = g->k - (g->k_blocks - 1) * g->k_block;
    return (steps + AMX_STEPS - 1) / AMX_STEPS * AMX_STEPS + AMX_STEPS;
}

/* Where all rows of a task are packed for some block of K; else 0. */
static inline int64_t amx_words_of_rows(const Gemm *g)
{
    return g->pack_a ? amx_line_words(g) : amx_odd_steps(g) ? amx_last_line_words(g) : 0;
}

/* Of a packed panel of B. */
static inline int64_t amx_panel_words(const Gemm *g)
{
    return g->k_block * AMX_TILE;
}

#endif
