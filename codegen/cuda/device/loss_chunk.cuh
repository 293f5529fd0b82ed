#include "loss_partial.cuh"
/* Losses of a chunk of the lines, summed in order: one partial result a block. */
DEVICE void loss_chunk(const Args a)
{
    SHARED float loss[BLOCK_LINES], one[BLOCK_LINES];
    const i64 from = part_start(blockIdx.x, LINES, CHUNKS);
    const i64 to = part_start((i64)blockIdx.x + 1, LINES, CHUNKS);
    const float weights = SMOOTHED && WEIGHTED ? all_weights(a) : 0.0f;
    double sum = 0;
    COUNT count = 0;
    i64 tile;
    int k;
    for (tile = from; tile < to; tile += BLOCK_LINES) {
        const int exists = tile + LINE_OF_BLOCK < to;
        const Line l = scan_line(a, exists ? tile + LINE_OF_BLOCK : to - 1, SMOOTHED);
        if (WRITES_FOR_LINE) {
            const int counts = exists && l.label >= 0;
            loss[LINE_OF_BLOCK] = counts ? loss_of_line(a, l, weights) : 0.0f;
            one[LINE_OF_BLOCK] = counts ? WEIGHT(l.label) : 0.0f;
        }
        __syncthreads();
        if (threadIdx.x == 0)
            for (k = 0; k < BLOCK_LINES; k++) {
                sum = sum + (double)loss[k];
                count = count + (COUNT)one[k];
            }
        __syncthreads();
    }
    if (threadIdx.x == 0)
        store_partial(a, sum, count);
}
