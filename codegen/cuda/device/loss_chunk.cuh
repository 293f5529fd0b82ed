/* Losses of a chunk of the lines, summed in order: one partial result a block. */
DEVICE void loss_chunk(const Args a)
{
    const i64 from = part_start(blockIdx.x, LINES, CHUNKS);
    const i64 to = part_start((i64)blockIdx.x + 1, LINES, CHUNKS);
    const float weights = SMOOTHED && WEIGHTED ? all_weights(a) : 0.0f;
    double sum = 0;
    COUNT count = 0;
    i64 line;
    for (line = from; line < to; line++) {
        const Line l = scan_line(a, line, SMOOTHED);
        if (l.label < 0)
            continue;
        sum = sum + (double)loss_of_line(a, l, weights);
#if WEIGHTED
        count = count + (double)WEIGHT(l.label);
#else
        count = count + 1;
#endif
    }
    if (threadIdx.x == 0) {
        char *partial = BUF(char, OUT_BUF) + (i64)blockIdx.x * PARTIAL_BYTES;
        *(double *)partial = sum;
        *(COUNT *)(partial + 8) = count;
    }
}
