/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cuda/matrix.h"

#include "codegen/cuda/rules.h"
#include "ir/support/divide.h"

static MatrixLower *const matrix_rules[OP_COUNT] = {
#define EACH_MATRIX(name) [OP_##name] = cuda_lower_##name,
#include "ir/ops_by_class.h"
};

void cuda_matrix(Lowering *l, const Node *node)
{
    lower_matrix(l, node, matrix_rules);
}

void cuda_fused(Lowering *l, const Node *node)
{
    lower_group(l, node, matrix_rules);
}

/* A thread with 8 x 4 results reads 12 numbers from shared memory for 32 multiply-adds, one with
 * 4 x 4 reads 8 for 16; but the former's tiles are twice as high: they are for products that have
 * one for every multiprocessor (an H100 has 132). */
enum { ENOUGH_TILES = 132 };

int64_t cuda_tiles(int row_quads, int64_t n, int64_t rows, int64_t columns)
{
    return n * divide_up(rows, TILE_QUAD * row_quads) * divide_up(columns, TILE_QUAD);
}

int cuda_row_quads(int64_t n, int64_t rows, int64_t columns)
{
    return cuda_tiles(2, n, rows, columns) < ENOUGH_TILES ? 1 : 2;
}
