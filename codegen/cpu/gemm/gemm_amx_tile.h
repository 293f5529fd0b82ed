/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A tile of a product by matrix registers: 32 rows and 32 columns, whose sums wait in four squares
 * (gemm_amx_layout.h) from one part of the steps to the next one. */
#ifndef SCRIMP_CODEGEN_CPU_GEMM_GEMM_AMX_TILE_H
#define SCRIMP_CODEGEN_CPU_GEMM_GEMM_AMX_TILE_H

#include "codegen/cpu/gemm/gemm_desc.h"
#include "codegen/jit/jit.h"

typedef struct AmxTile {
    const Gemm *g;
    int columns;             /* that exist */
    int64_t partial_stride;  /* floats between rows of partial sums */
    JitValue sums;           /* p_f32 */
    JitValue partial;        /* p_f32; its first element there */
    JitValue row, col, rows; /* of the result; how many rows exist */
} AmxTile;

/* What one part adds. */
typedef struct AmxPart {
    JitValue a, b;   /* p_bf16: the first squares */
    JitValue blocks; /* times 32 steps */
    JitValue zero;   /* boolean: there are no sums yet */
    JitValue next;   /* p_char: the first of the lines that are asked for of B, amx_ahead */
    JitValue block;  /* how many times 32 steps of the block of K come before it */
    JitValue asks;   /* rows of the result that are asked for with each 32 steps of that */
} AmxPart;
void amx_add_part(Jit *j, const AmxTile *t, const AmxPart *p);

/* Lines of the cache of what is packed next of a B whose rows are columns: with every 32 steps a
 * tile asks for those of `rows` rows, and goes on along these. */
typedef struct AmxAhead {
    int rows, lines;
    int64_t row_bytes, advance_bytes;
} AmxAhead;
AmxAhead amx_ahead(const Gemm *g);

/* Sums come from where they wait between blocks of K, or go there, or to the result. */
void amx_load_partial(Jit *j, const AmxTile *t);
void amx_store_partial(Jit *j, const AmxTile *t);
void amx_store_result(Jit *j, const AmxTile *t);

#endif
