#include "real.cuh"
/* Right answers and labels of a chunk of the lines; of equal logits the first is the answer. */
/* A NaN is no answer unless it is the first. */
DEVICE i64 answer(const REAL(0) *x)
{
    const i64 best = first_largest(x, 0);
    return VALUE(0, x[0]) == VALUE(0, x[0]) ? best : 0;
}

DEVICE void accuracy_chunk(const Args a)
{
    const i64 from = part_start(blockIdx.x, LINES, CHUNKS);
    const i64 to = part_start((i64)blockIdx.x + 1, LINES, CHUNKS);
    i64 right = 0, labels = 0, tile;
    for (tile = from; tile < to; tile += LINES_AT_ONCE) {
        const int exists = tile + LINE_OF_BLOCK < to;
        const i64 line = exists ? tile + LINE_OF_BLOCK : to - 1, label = label_of(a, line);
        const i64 best = answer(BUF(const REAL(0), 0) + line_start(line));
        if (exists && WRITES_FOR_LINE) {
            labels += label >= 0;
            right += label >= 0 && label == best;
        }
    }
    right = block_count(right);
    labels = block_count(labels);
    if (threadIdx.x == 0) {
        char *partial = BUF(char, 2) + (i64)blockIdx.x * PARTIAL_BYTES;
        *(i64 *)partial = right;
        *(i64 *)(partial + 8) = labels;
    }
}
