#include "real.cuh"
/* The gradient of the weights: a thread a weight of a chunk of the rows of dy, images after one
 * another.  codegen/forms/convolution.h says in which order its sum is made.  SKIP_OUTSIDE: pixels
 * outside of x take no part, instead of being zeros. */

/* Rows [from, to) of dy. */
DEVICE float weight_chain(const REAL(A_BUF) *x, const REAL(B_BUF) *dy, i64 r, i64 s, i64 channel,
                          i64 k, i64 from, i64 to)
{
    float chain = 0.0f;
    i64 row, ox;
    for (row = from; row < to; row++) {
        const i64 n = row / OUT_HEIGHT, oy = row % OUT_HEIGHT;
        const i64 at_y = oy * STRIDE_Y - PAD_Y + r * DILATION_Y;
        const int row_inside = at_y >= 0 && at_y < HEIGHT;
        if (SKIP_OUTSIDE && !row_inside)
            continue;
        for (ox = 0; ox < OUT_WIDTH; ox++) {
            const i64 at_x = ox * STRIDE_X - PAD_X + s * DILATION_X;
            const int inside = row_inside && at_x >= 0 && at_x < WIDTH;
            if (!SKIP_OUTSIDE || inside)
                chain = fmaf(inside ? VALUE(A_BUF, x[x_at(n, channel, at_y, at_x)]) : 0.0f,
                             VALUE(B_BUF, dy[y_at(n, k, oy, ox)]), chain);
        }
    }
    return chain;
}

/* A chunk's rows, in bands of BAND_ROWS. */
DEVICE float weight_sum(const Args a, i64 r, i64 s, i64 c, i64 k, i64 from, i64 to)
{
    const i64 channel = k / GROUP_OUT * GROUP_IN + c;
    float total = 0.0f;
    i64 band;
    for (band = from; band < to; band += BAND_ROWS) {
        const i64 end = band + BAND_ROWS < to ? band + BAND_ROWS : to;
        const float chain = weight_chain(BUF(const REAL(A_BUF), A_BUF), BUF(const REAL(B_BUF), B_BUF),
                                         r, s, channel, k, band, end);
        total = band == from ? chain : total + chain;
    }
    return total;
}

DEVICE void conv_weight(const Args a, i64 at)
{
    const i64 chunk = at / WEIGHTS, place = at % WEIGHTS;
    const i64 row = place / LAST_WEIGHT_DIM, column = place % LAST_WEIGHT_DIM;
#if NHWC
    const i64 k = column, c = row % GROUP_IN, s = row / GROUP_IN % TAP_COLUMNS;
    const i64 r = row / GROUP_IN / TAP_COLUMNS;
#else
    const i64 s = column, r = row % TAP_ROWS, c = row / TAP_ROWS % GROUP_IN;
    const i64 k = row / TAP_ROWS / GROUP_IN;
#endif
    float sum;
    if (chunk >= CHUNKS)
        return;
    sum = weight_sum(a, r, s, c, k, part_start(chunk, DY_ROWS, CHUNKS),
                     part_start(chunk + 1, DY_ROWS, CHUNKS));
    STORE_SUM(chunk, row, column, sum);
}
