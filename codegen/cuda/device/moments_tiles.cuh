/* INNER is 1: channels side by side, by tiles. */
#if IS_STATS
#define FOLD_ROW(m, r, row, start) m = add_values(m, HERE(0, r), 0.0f, start);
#else
#define FOLD_ROW(m, r, row, start) m = add_values(m, HERE(0, r), HERE(1, r), start);
#endif
#define JOIN_WAYS(a, b) ((a) + (b))
#include "columns.cuh"

DEVICE void moments_tiles(const Args a)
{
    const i64 chunk = (i64)blockIdx.x / BLOCKS, first = (i64)blockIdx.x % BLOCKS * COLUMNS;
    const i64 channel = first + COLUMN;
    const float start = channel < CHANNELS ? START_OF(chunk, channel) : 0.0f;
    const TwoSums none = {0.0f, 0.0f};
    const TwoSums m = join_ways(sum_way(a, chunk, first, start, none));
    if (WAY == 0 && channel < CHANNELS)
        store_moments(a, m, chunk, channel);
}
