#include "real.cuh"
/* y, or, where TRANSPOSED, the gradient of x: a thread an element.  codegen/forms/convolution.h says
 * in which order an element's sum is made.  BACKWARDS: over the kernel from its last place;
 * SKIP_OUTSIDE: places outside of the source take no part, instead of being zeros. */
#include "conv_sides.cuh"

#define NOWHERE (-(1LL << 40))

/* The place of the source under kernel place t of result place i. */
DEVICE i64 source_place(i64 i, i64 t, i64 stride, i64 pad, i64 dilation)
{
#if TRANSPOSED
    const i64 far = i + pad - t * dilation;
    return far % stride == 0 ? far / stride : NOWHERE;
#else
    return i * stride - pad + t * dilation;
#endif
}

/* Channel `inner` of the group. */
DEVICE float conv_sum(const REAL(A_BUF) *source, const REAL(B_BUF) *weights, i64 n, i64 group,
                      i64 inner, i64 y, i64 x)
{
    float total = 0.0f, sum = 0.0f;
    i64 i, j, c;
    for (i = 0; i < TAP_ROWS; i++) {
        const i64 r = BACKWARDS ? TAP_ROWS - 1 - i : i;
        const i64 sy = source_place(y, r, STRIDE_Y, PAD_Y, DILATION_Y);
        const int row_inside = sy >= 0 && sy < SOURCE_HEIGHT;
        if (sy == NOWHERE || (SKIP_OUTSIDE && !row_inside))
            continue;
        for (j = 0; j < TAP_COLUMNS; j++) {
            const i64 s = BACKWARDS ? TAP_COLUMNS - 1 - j : j;
            const i64 sx = source_place(x, s, STRIDE_X, PAD_X, DILATION_X);
            const int inside = row_inside && sx >= 0 && sx < SOURCE_WIDTH;
            if (sx == NOWHERE || (SKIP_OUTSIDE && !inside))
                continue;
            for (c = 0; c < SOURCE_GROUP; c++) {
                const i64 from = SOURCE_AT(n, group * SOURCE_GROUP + c, sy, sx);
                const i64 weight = TRANSPOSED ? weight_at(r, s, inner, group * GROUP_OUT + c)
                                              : weight_at(r, s, c, group * GROUP_OUT + inner);
                sum = fmaf(inside ? VALUE(A_BUF, source[from]) : 0.0f, VALUE(B_BUF, weights[weight]),
                           sum);
            }
            if (PLACE_CHAINS)
                total += sum, sum = 0.0f;
        }
        if (ROW_CHAINS)
            total += sum, sum = 0.0f;
    }
    return total + sum;
}

/* The last dim of the result in memory is LAST_DIM places long. */
#if NHWC
#define LAST_DIM RESULT_CHANNELS
#else
#define LAST_DIM RESULT_WIDTH
#endif

DEVICE void conv_element(const Args a, i64 element)
{
    const i64 row = element / LAST_DIM, column = element % LAST_DIM;
#if NHWC
    const i64 channel = column, x = row % RESULT_WIDTH, y = row / RESULT_WIDTH % RESULT_HEIGHT;
    const i64 n = row / RESULT_WIDTH / RESULT_HEIGHT;
#else
    const i64 x = column, y = row % RESULT_HEIGHT, channel = row / RESULT_HEIGHT % RESULT_CHANNELS;
    const i64 n = row / RESULT_HEIGHT / RESULT_CHANNELS;
#endif
    float sum;
    if (n >= IMAGES)
        return;
    sum = conv_sum(BUF(const REAL(A_BUF), A_BUF), BUF(const REAL(B_BUF), B_BUF), n,
                   channel / RESULT_GROUP, channel % RESULT_GROUP, y, x);
    epilogue(a, row, column, ADD_BIAS(sum, channel));
}
