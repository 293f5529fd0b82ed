/* layernorm_sums.cuh by tiles. */
#define FOLD_ROW(m, r, row, start) m = add_row(a, m, row, HERE(0, r), HERE(1, r));
#define JOIN_WAYS(a, b) ((a) + (b))
#include "two_sums.cuh"

DEVICE TwoSums add_row(const Args a, TwoSums m, i64 row, float dy, float x)
{
    m.first = m.first + dy * ((x - BUF(const float, 2)[row]) * BUF(const float, 3)[row]);
    m.second = m.second + dy;
    return m;
}

#include "columns.cuh"

DEVICE void layernorm_tiles(const Args a)
{
    const i64 chunk = (i64)blockIdx.x / BLOCKS, first = (i64)blockIdx.x % BLOCKS * COLUMNS;
    const TwoSums none = {0.0f, 0.0f};
    const TwoSums m = join_ways(sum_way(a, chunk, first, 0.0f, none));
    float *partial = BUF(float, 4) + chunk * PARTIAL_FLOATS + first + COLUMN;
    if (WAY > 0 || first + COLUMN >= LENGTH)
        return;
    partial[0] = m.first;
    partial[LENGTH] = m.second;
}
