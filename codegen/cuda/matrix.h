/* SPDX-License-Identifier: GPL-3.0-or-later */
/* cuda_lower_NAME for every MATRIX operation: adds its calls. */
#ifndef SCRIMP_CODEGEN_CUDA_MATRIX_H
#define SCRIMP_CODEGEN_CUDA_MATRIX_H

#include "codegen/forms/product.h"

#define EACH_MATRIX(name) MatrixLower cuda_lower_##name;
#include "ir/ops_by_class.h"

/* A node that is the product p of its first two operands.  what: for the label. */
void cuda_product(const MatrixNode *m, const Product *p, const char *what);

/* How the threads of a block share a tile of device/tile.cuh. */
typedef struct TileShape {
    int row_threads, column_threads, row_quads, column_quads, teams;
    int blocks; /* of a multiprocessor, as its registers allow */
    int speed;  /* multiply-adds in a time, of all that a multiprocessor could do, in percent */
} TileShape;

/* For n results of so many rows and columns, each a sum of that many chains. */
TileShape cuda_tile_shape(int64_t n, int64_t rows, int64_t columns, int64_t chains);
int64_t cuda_tile_rows(const TileShape *s);
int64_t cuda_tiles(const TileShape *s, int64_t n, int64_t rows, int64_t columns);
int cuda_tile_threads(const TileShape *s);
/* What device/tile.cuh is told; and the kernel `symbol`, as in text.h. */
void text_tile(StrBuf *out, const TileShape *s);
void text_tile_kernel(StrBuf *out, const char *symbol, const TileShape *s, const char *body);

#endif
