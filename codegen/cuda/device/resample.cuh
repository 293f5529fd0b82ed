#include "real.cuh"
/* Weighted sums of pixels of the image and channel x.  Output row oh reads rows row_shift[oh] + k
 * for k in [row_end[oh], row_end[oh + 1]), with row_weight[k]; columns likewise.  Where ROW_BLOCK is
 * not 0, so many taps are added up, from zero, before they join the sum.  Unrolled loops would
 * spill registers. */
#define ROW_STEP ((i64)IN_W * CHANNELS)

DEVICE int block_end(int k, int block, int end)
{
    return block && k + block < end ? k + block : end;
}

/* x: the pixel of row 0. */
DEVICE float sum_rows(const REAL(0) *x, int oh)
{
    const int end = row_end[oh + 1];
    float sum = 0.0f;
    for (int k = row_end[oh]; k < end;) {
        const int stop = block_end(k, ROW_BLOCK, end);
        float part = 0.0f;
#pragma unroll 1
        for (; k < stop; k++)
            part = fmaf(row_weight[k], VALUE(0, x[(row_shift[oh] + k) * ROW_STEP]), part);
        sum = ROW_BLOCK ? sum + part : part;
    }
    return sum;
}

DEVICE float rows_then_columns(const REAL(0) *x, int oh, int ow)
{
    const int end = column_end[ow + 1];
    float sum = 0.0f;
    for (int k = column_end[ow]; k < end;) {
        const int stop = block_end(k, COLUMN_BLOCK, end);
        float part = 0.0f;
#pragma unroll 1
        for (; k < stop; k++)
            part = fmaf(column_weight[k], sum_rows(x + (i64)(column_shift[ow] + k) * CHANNELS, oh), part);
        sum = COLUMN_BLOCK ? sum + part : part;
    }
    return sum;
}

/* Adds the pixels of a row, whose weight is `weight`, to a sum. */
DEVICE float add_columns(float sum, const REAL(0) *x, float weight, int ow)
{
    const int end = column_end[ow + 1];
    for (int k = column_end[ow]; k < end;) {
        const int stop = block_end(k, COLUMN_BLOCK, end);
        float part = COLUMN_BLOCK ? 0.0f : sum;
        for (; k < stop; k++)
            part = fmaf(column_weight[k] * weight, VALUE(0, x[(i64)(column_shift[ow] + k) * CHANNELS]), part);
        sum = COLUMN_BLOCK ? sum + part : part;
    }
    return sum;
}

DEVICE float rows_and_columns(const REAL(0) *x, int oh, int ow)
{
    const int end = row_end[oh + 1];
    float sum = 0.0f;
    for (int k = row_end[oh]; k < end;) {
        const int stop = block_end(k, ROW_BLOCK, end);
        float part = 0.0f;
#pragma unroll 1
        for (; k < stop; k++)
            part = add_columns(part, x + (row_shift[oh] + k) * ROW_STEP, row_weight[k], ow);
        sum = ROW_BLOCK ? sum + part : part;
    }
    return sum;
}

DEVICE float copied(const REAL(0) *x, int oh, int ow)
{
    const i64 h = row_shift[oh] + row_end[oh], w = column_shift[ow] + column_end[ow];
    return VALUE(0, x[h * ROW_STEP + w * CHANNELS]);
}
