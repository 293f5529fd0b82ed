/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cuda/matrix.h"

#include "codegen/cuda/rules.h"
#include "codegen/cuda/text.h"
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

/* A thread with 8 x 8 results reads 16 numbers from shared memory for 64 multiply-adds, one with 4
 * x 4 reads 8 for 16; but the smaller a tile is, the more multiprocessors have one.  Teams make
 * chains of the same results at once. */
static const TileShape shapes[] = {
    {8, 16, 2, 2, 1, 3, 100}, {16, 8, 2, 2, 1, 3, 100}, {8, 8, 2, 2, 2, 3, 95},
    {8, 16, 2, 1, 1, 4, 75},  {8, 8, 1, 1, 1, 8, 50},   {4, 8, 2, 1, 8, 2, 65},
    {4, 4, 1, 1, 16, 2, 35},
};
enum { MULTIPROCESSORS = 132 /* of an H100 */ };

int64_t cuda_tile_rows(const TileShape *s)
{
    return 4 * (int64_t)s->row_threads * s->row_quads;
}

static int64_t tile_columns(const TileShape *s)
{
    return 4 * (int64_t)s->column_threads * s->column_quads;
}

int64_t cuda_tiles(const TileShape *s, int64_t n, int64_t rows, int64_t columns)
{
    return n * divide_up(rows, cuda_tile_rows(s)) * divide_up(columns, tile_columns(s));
}

int cuda_tile_threads(const TileShape *s)
{
    return s->row_threads * s->column_threads * s->teams;
}

/* The time of the multiprocessor that has the most tiles. */
static double tile_time(const TileShape *s, int64_t n, int64_t rows, int64_t columns)
{
    int64_t tiles = divide_up(cuda_tiles(s, n, rows, columns), MULTIPROCESSORS);
    return (double)tiles * (double)(cuda_tile_rows(s) * tile_columns(s)) / s->speed;
}

TileShape cuda_tile_shape(int64_t n, int64_t rows, int64_t columns, int64_t chains)
{
    const TileShape *best = shapes;
    for (size_t i = 1; i < sizeof shapes / sizeof *shapes; i++)
        if (shapes[i].teams <= chains &&
            tile_time(&shapes[i], n, rows, columns) < tile_time(best, n, rows, columns))
            best = &shapes[i];
    return *best;
}

void text_tile(StrBuf *out, const TileShape *s)
{
    text_define(out, "ROW_THREADS", s->row_threads);
    text_define(out, "COLUMN_THREADS", s->column_threads);
    text_define(out, "ROW_QUADS", s->row_quads);
    text_define(out, "COLUMN_QUADS", s->column_quads);
    text_define(out, "TEAMS", s->teams);
    text_include(out, "tile");
}

void text_tile_kernel(StrBuf *out, const char *symbol, const TileShape *s, const char *body)
{
    text_kernel_blocks(out, symbol, cuda_tile_threads(s), s->blocks, body);
}
