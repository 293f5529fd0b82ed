#include "real.cuh"
/* The gradients of gamma and beta: sums over rows of dy xhat and of dy.  A thread a column of a
 * chunk of the rows, with four sums each, as codegen/cpu/reduce/channel_stats.c has them. */
DEVICE void layernorm_sums(const Args a)
{
    const i64 at = (i64)blockIdx.x * THREADS + threadIdx.x, column = at % LENGTH;
    const i64 chunk = at / LENGTH, from = part_start(chunk, ROWS, CHUNKS);
    const i64 to = part_start(chunk + 1, ROWS, CHUNKS), fours_end = from + (to - from) / 4 * 4;
    float first[4] = {0.0f, 0.0f, 0.0f, 0.0f}, second[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    float *partial = BUF(float, 4) + chunk * PARTIAL_FLOATS;
    i64 row;
    if (chunk >= CHUNKS)
        return;
#define ADD_ROW(k, r)                                                                              \
    {                                                                                              \
        const float dy = VALUE(0, BUF(const REAL(0), 0)[(r) * LENGTH + column]);                   \
        const float x = VALUE(1, BUF(const REAL(1), 1)[(r) * LENGTH + column]);                    \
        first[k] = first[k] + dy * ((x - BUF(const float, 2)[r]) * BUF(const float, 3)[r]);        \
        second[k] = second[k] + dy;                                                                \
    }
    for (row = from; row < fours_end; row += 4) {
        ADD_ROW(0, row)
        ADD_ROW(1, row + 1)
        ADD_ROW(2, row + 2)
        ADD_ROW(3, row + 3)
    }
    for (; row < to; row++)
        ADD_ROW(0, row)
    partial[column] = first[0] + first[1] + (first[2] + first[3]);
    partial[LENGTH + column] = second[0] + second[1] + (second[2] + second[3]);
}
