/* y[o, m, i] = x[o, index[o, m, i], i], a thread an element; numbers outside of the axis are those of
 * its first or last element. */
DEVICE void gather(const Args a)
{
    const i64 at = (i64)blockIdx.x * THREADS + threadIdx.x;
    const i64 line = at / ((i64)COUNT * INNER);
    i64 k;
    if (at >= (i64)OUTER * COUNT * INNER)
        return;
    k = (i64)BUF(const INDEX, 1)[at];
    k = k < 0 ? 0 : k >= LENGTH ? LENGTH - 1 : k;
    BUF(BITS, 2)[at] = BUF(const BITS, 0)[(line * LENGTH + k) * INNER + at % INNER];
}
