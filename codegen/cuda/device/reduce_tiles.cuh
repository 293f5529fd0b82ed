/* A reduction of columns by tiles. */
#define FOLD_ROW(m, r, row, start) m.first = FOLD(m.first, HERE(0, r));
#define JOIN_WAYS(a, b) JOIN(a, b)
#include "columns.cuh"

DEVICE void reduce_tiles(const Args a)
{
    const i64 chunk = (i64)blockIdx.x / BLOCKS, first = (i64)blockIdx.x % BLOCKS * COLUMNS;
    const TwoSums none = {START, 0.0f};
    const TwoSums m = join_ways(sum_way(a, chunk, first, 0.0f, none));
    if (WAY == 0 && first + COLUMN < WIDTH)
        BUF(float, 1)[chunk * PARTIAL_FLOATS + first + COLUMN] = m.first;
}
