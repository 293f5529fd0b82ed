#include "real.cuh"
/* Local response normalisation of lines of CHANNELS elements, INNER elements apart.  Buffers in
 * shared memory have the elements of BLOCK_LINES lines, which lie as in memory: element e of a buffer
 * is channel channel_of(e), its neighbours in the line lie STEP apart. */
#define ELEMENTS (CHANNELS * BLOCK_LINES)
#define STEP     (INNER == 1 ? 1 : BLOCK_LINES)
#define EACH_ELEMENT(e) for (int e = threadIdx.x; e < ELEMENTS; e += 256)

DEVICE int channel_of(int e)
{
    return INNER == 1 ? e % CHANNELS : e / BLOCK_LINES;
}

/* Where the element lies in memory; -1: behind the last line. */
DEVICE i64 place_of(int e)
{
    const i64 first = (i64)blockIdx.x * BLOCK_LINES;
    const i64 line = first + (INNER == 1 ? e / CHANNELS : e % BLOCK_LINES);
    return line < LINES ? (line / INNER * CHANNELS + channel_of(e)) * INNER + line % INNER : -1;
}

/* The sum of a buffer over a window of channels around e, from the first to the last. */
DEVICE float window_sum(const float *buffer, int e, int before, int after)
{
    const int channel = channel_of(e);
    float sum = 0.0f;
    for (int i = -before; i <= after; i++) {
        const int inside = channel + i >= 0 && channel + i < CHANNELS;
        const float term = inside ? buffer[e + i * STEP] : 0.0f;
        sum = FROM_FIRST && i == -before ? term : sum + term;
    }
    return sum;
}

DEVICE void put_squares(float *squares, const REAL(X_BUF) *x)
{
    EACH_ELEMENT(e)
    {
        const i64 at = place_of(e);
        if (at >= 0)
            squares[e] = VALUE(X_BUF, x[at]) * VALUE(X_BUF, x[at]);
    }
    __syncthreads();
}

DEVICE float normaliser(const float *squares, int e)
{
    return K + ALPHA * window_sum(squares, e, BEFORE, AFTER);
}

DEVICE float power(float s)
{
    return POWER(s);
}
