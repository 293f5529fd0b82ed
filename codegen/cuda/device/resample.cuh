/* Weighted sums of pixels of the image and channel x.  Output row oh reads rows row_shift[oh] + k
 * for k in [row_end[oh], row_end[oh + 1]), with row_weight[k]; columns likewise.  Where ROW_BLOCK is
 * not 0, so many taps are added up, from zero, before they join the sum. */
#define ROW_STEP ((i64)IN_W * CHANNELS)

DEVICE i64 block_end(i64 k, i64 block, i64 end)
{
    return block && k + block < end ? k + block : end;
}

/* x: the pixel of row 0. */
DEVICE float sum_rows(const float *x, i64 oh)
{
    const i64 end = row_end[oh + 1];
    float sum = 0.0f;
    for (i64 k = row_end[oh]; k < end;) {
        const i64 stop = block_end(k, ROW_BLOCK, end);
        float part = 0.0f;
        for (; k < stop; k++)
            part = fmaf(row_weight[k], x[(row_shift[oh] + k) * ROW_STEP], part);
        sum = ROW_BLOCK ? sum + part : part;
    }
    return sum;
}

DEVICE float rows_then_columns(const float *x, i64 oh, i64 ow)
{
    const i64 end = column_end[ow + 1];
    float sum = 0.0f;
    for (i64 k = column_end[ow]; k < end;) {
        const i64 stop = block_end(k, COLUMN_BLOCK, end);
        float part = 0.0f;
        for (; k < stop; k++)
            part = fmaf(column_weight[k], sum_rows(x + (column_shift[ow] + k) * CHANNELS, oh), part);
        sum = COLUMN_BLOCK ? sum + part : part;
    }
    return sum;
}

/* Adds the pixels of a row, whose weight is `weight`, to a sum. */
DEVICE float add_columns(float sum, const float *x, float weight, i64 ow)
{
    const i64 end = column_end[ow + 1];
    for (i64 k = column_end[ow]; k < end;) {
        const i64 stop = block_end(k, COLUMN_BLOCK, end);
        float part = COLUMN_BLOCK ? 0.0f : sum;
        for (; k < stop; k++)
            part = fmaf(column_weight[k] * weight, x[(column_shift[ow] + k) * CHANNELS], part);
        sum = COLUMN_BLOCK ? sum + part : part;
    }
    return sum;
}

DEVICE float rows_and_columns(const float *x, i64 oh, i64 ow)
{
    const i64 end = row_end[oh + 1];
    float sum = 0.0f;
    for (i64 k = row_end[oh]; k < end;) {
        const i64 stop = block_end(k, ROW_BLOCK, end);
        float part = 0.0f;
        for (; k < stop; k++)
            part = add_columns(part, x + (row_shift[oh] + k) * ROW_STEP, row_weight[k], ow);
        sum = ROW_BLOCK ? sum + part : part;
    }
    return sum;
}

DEVICE float copied(const float *x, i64 oh, i64 ow)
{
    const i64 h = row_shift[oh] + row_end[oh], w = column_shift[ow] + column_end[ow];
    return x[h * ROW_STEP + w * CHANNELS];
}
