/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matrix products in memory that is no buffer of its own, of as many rows and steps as a number
 * says at run time, by the tile of all matrix products. */
#ifndef SCRIMP_CODEGEN_CPU_ATTENTION_ATTENTION_PRODUCT_H
#define SCRIMP_CODEGEN_CPU_ATTENTION_ATTENTION_PRODUCT_H

#include "codegen/cpu/gemm/gemm_tile.h"
#include "codegen/jit/jit.h"

/* to[r][c] = sum over steps of a[r][step] * b[step][c] */
typedef struct BlockProduct {
    JitValue a, b, to;
    int64_t a_row, a_step; /* elements between rows and steps of a */
    int64_t b_step;        /* of b, whose rows are whole vectors, aligned as such */
    int64_t to_row;
    bool to_padded; /* rows of the result have room for whole vectors */
    int64_t columns;
    JitValue rows, steps;
    TileEnd end;    /* TILE_PARTIAL or TILE_CHAIN */
    JitValue first; /* NULL: always */
} BlockProduct;

void block_product(Jit *j, const BlockProduct *p);

#endif
