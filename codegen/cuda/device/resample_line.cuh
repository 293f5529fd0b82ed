#include "real.cuh"
/* Outputs with many taps: a block adds up the rows of the columns that an output of TILE_CHANNELS
 * channels reads, SPAN columns at a time, side by side, then a thread a channel the columns. */
#define SPAN  (4096 / TILE_CHANNELS)
#define SLOTS (THREADS / TILE_CHANNELS)
#define BLOCK (COLUMN_BLOCK ? COLUMN_BLOCK : 1)

DEVICE void resample_line(const Args a)
{
    SHARED float line[SPAN][TILE_CHANNELS];
    const i64 tiles = (CHANNELS + TILE_CHANNELS - 1) / TILE_CHANNELS;
    const i64 pixel = (i64)blockIdx.x / tiles, row = pixel / OUT_W;
    const int oh = (int)(row % OUT_H), ow = (int)(pixel % OUT_W);
    const int c = threadIdx.x % TILE_CHANNELS, slot = threadIdx.x / TILE_CHANNELS;
    const i64 channel = (i64)blockIdx.x % tiles * TILE_CHANNELS + c;
    const int begin = column_end[ow], end = column_end[ow + 1];
    const REAL(0) *x = BUF(const REAL(0), 0) + row / OUT_H * ((i64)IN_H * ROW_STEP) + channel;
    float sum = 0.0f, part = 0.0f;
    for (int from = begin; from < end; from += SPAN) {
        const int to = from + SPAN < end ? from + SPAN : end;
        for (int k = from + slot; k < to && channel < CHANNELS; k += SLOTS)
            line[k - from][c] = sum_rows(x + (i64)(column_shift[ow] + k) * CHANNELS, oh);
        __syncthreads();
        for (int k = from; k < to && slot == 0; k++) {
            part = fmaf(column_weight[k], line[k - from][c], part);
            if (COLUMN_BLOCK && ((k + 1 - begin) % BLOCK == 0 || k + 1 == end)) {
                sum = sum + part;
                part = 0.0f;
            }
        }
        __syncthreads();
    }
    if (slot == 0 && channel < CHANNELS)
        BUF(REAL(1), 1)[pixel * CHANNELS + channel] = OF(1, COLUMN_BLOCK ? sum : part);
}
