/* The other order of the two dims of a matrix of ROWS x COLUMNS, in squares of SIDE x SIDE; buffers may hold
 * f32 or bf16 each. */
#include "real.cuh"

#define SIDE 32

DEVICE void turn(const Args a)
{
    SHARED float tile[SIDE][SIDE + 1];
    const i64 across = (COLUMNS + SIDE - 1) / SIDE;
    const i64 row = blockIdx.x / across * SIDE, column = blockIdx.x % across * SIDE;
    const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE, rows = 256 / SIDE;
    const REAL(0) *from = BUF(const REAL(0), 0);
    REAL(1) *to = BUF(REAL(1), 1);
    for (int i = y; i < SIDE; i += rows)
        if (row + i < ROWS && column + x < COLUMNS)
            tile[i][x] = VALUE(0, from[(row + i) * (i64)COLUMNS + column + x]);
    __syncthreads();
    for (int i = y; i < SIDE; i += rows)
        if (column + i < COLUMNS && row + x < ROWS)
            to[(column + i) * (i64)ROWS + row + x] = OF(1, tile[x][i]);
}
