/* SPDX-License-Identifier: GPL-3.0-or-later */
/* cuda_lower_NAME for every MATRIX operation: adds its calls. */
#ifndef SCRIMP_CODEGEN_CUDA_MATRIX_H
#define SCRIMP_CODEGEN_CUDA_MATRIX_H

#include "codegen/forms/product.h"

#define EACH_MATRIX(name) MatrixLower cuda_lower_##name;
#include "ir/ops_by_class.h"

/* A node that is the product p of its first two operands.  what: for the label. */
void cuda_product(const MatrixNode *m, const Product *p, const char *what);

/* Tiles of device/tile.cuh: TILE_THREADS threads make row_quads * TILE_QUAD rows of TILE_QUAD
 * columns. */
enum { TILE_QUAD = 64, TILE_THREADS = 256 };
/* For n products of so many rows and columns; and how many tiles they are. */
int cuda_row_quads(int64_t n, int64_t rows, int64_t columns);
int64_t cuda_tiles(int row_quads, int64_t n, int64_t rows, int64_t columns);

#endif
