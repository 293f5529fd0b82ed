#include "real.cuh"
/* Rows of a table by number: a thread an element.  Numbers outside of the table are those of its
 * first or last row. */
DEVICE void embedding(const Args a)
{
    const i64 at = (i64)blockIdx.x * THREADS + threadIdx.x;
    i64 id;
    if (at >= (i64)IDS * WIDTH)
        return;
    id = (i64)BUF(const ID, 0)[at / WIDTH];
    id = id < 0 ? 0 : id >= ROWS ? ROWS - 1 : id;
    BUF(REAL(2), 2)[at] = OF(2, VALUE(1, BUF(const REAL(1), 1)[id * WIDTH + at % WIDTH]));
}
