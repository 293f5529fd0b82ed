#include "loss_partial.cuh"
/* Losses of a chunk of the lines, which buffer 0 has, summed in order: one partial result a
 * block. */
DEVICE void loss_sums(const Args a)
{
    SHARED float loss[THREADS], one[THREADS];
    const i64 to = part_start((i64)blockIdx.x + 1, LINES, CHUNKS);
    double sum = 0;
    COUNT count = 0;
    i64 tile;
    int k;
    for (tile = part_start(blockIdx.x, LINES, CHUNKS); tile < to; tile += THREADS) {
        const i64 line = tile + threadIdx.x;
        const PLACE label = line < to ? label_of(a, line) : -1;
        loss[threadIdx.x] = line < to ? BUF(const float, 0)[line] : 0.0f;
        one[threadIdx.x] = label >= 0 ? WEIGHT(label) : 0.0f;
        __syncthreads();
        for (k = 0; k < THREADS && threadIdx.x == 0; k++) {
            sum = sum + (double)loss[k];
            count = count + (COUNT)one[k];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0)
        store_partial(a, sum, count);
}
