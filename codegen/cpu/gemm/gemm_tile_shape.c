/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How many rows and vectors a tile has, and how rows are spread over tiles. */
#include "codegen/cpu/gemm/gemm_tile.h"

#include "ir/support/divide.h"

/* Measured shapes; docs/cpu.md.  One register is left for the broadcast, `vectors` for B; without
 * FMA the product needs one more. */
static int rows_for(const Target *t, int vectors)
{
    if (t->vector_registers >= 32) {
        static const int rows[] = {0, 24, 14, 8, 6};
        return rows[vectors];
    }
    static const int fma[] = {0, 12, 6, 4, 2}, plain[] = {0, 10, 4, 3, 2};
    return t->fma ? fma[vectors] : plain[vectors];
}

/* Time of one step of a tile against the ideal: two loads and two multiply-adds per cycle, and what
 * the loop and the latency of short tiles cost. */
static double shape_cost(int rows, int vectors)
{
    int products = rows * vectors, loads = rows + vectors;
    return (products > loads ? products : loads) + 2;
}

/* Time per step and row of a whole result row. */
static double row_cost(int rows, int vectors, int64_t n_vectors)
{
    int rest = (int)(n_vectors % vectors);
    double cost = (double)(n_vectors / vectors) * shape_cost(rows, vectors);
    return (cost + (rest ? shape_cost(rows, rest) : 0)) / rows;
}

TileShape tile_shape(const Target *target, int64_t n_vectors, int64_t max_rows)
{
    TileShape best = {0, 0};
    double best_cost = 0;
    for (int v = 1; v <= TILE_MAX_VECTORS && v <= n_vectors; v++) {
        int rows = rows_for(target, v);
        if (rows > max_rows)
            rows = (int)max_rows;
        double cost = row_cost(rows, v, n_vectors);
        if (v == 1 || cost < best_cost) {
            best = (TileShape){rows, v};
            best_cost = cost;
        }
    }
    return best;
}

TileShape tile_shape_of(const Target *target, int64_t n_vectors, int64_t max_rows, int vectors)
{
    if (!vectors || vectors > n_vectors)
        return tile_shape(target, n_vectors, max_rows);
    int rows = rows_for(target, vectors);
    return (TileShape){rows < max_rows ? rows : (int)max_rows, vectors};
}

int tile_wide_vectors(const Target *target, int64_t n_vectors, int64_t rows)
{
    int v = TILE_MAX_VECTORS < n_vectors ? TILE_MAX_VECTORS : (int)n_vectors;
    while (v > 1 && rows_for(target, v) < rows)
        v--;
    return v > 1 ? v : 0;
}

TileSplit tile_split(int64_t n, int64_t most)
{
    int64_t tiles = divide_up(n, most);
    TileSplit s = {tiles, n / tiles, n % tiles};
    return s;
}

int64_t tile_row(const TileSplit *s, int64_t tile)
{
    return tile * s->base + (tile < s->extra ? tile : s->extra);
}

int64_t tile_rows_most(const TileSplit *s)
{
    return s->base + (s->extra > 0);
}
