/* Right answers and labels of a chunk of the lines; of equal logits the first is the answer. */
DEVICE i64 first_largest(const float *x)
{
    float value = x[0];
    i64 best = 0, k;
    for (k = 1; k < LENGTH; k++)
        if (x[k * INNER] > value) {
            value = x[k * INNER];
            best = k;
        }
    return best;
}

DEVICE void accuracy_chunk(const Args a)
{
    const i64 from = part_start(blockIdx.x, LINES, CHUNKS);
    const i64 to = part_start((i64)blockIdx.x + 1, LINES, CHUNKS);
    i64 right = 0, labels = 0, line;
    for (line = from + threadIdx.x; line < to; line += PARTIALS) {
        const i64 label = label_of(a, line);
        labels += label >= 0;
        right += label >= 0 && label == first_largest(BUF(const float, 0) + line_start(line));
    }
    right = join_line_count(right);
    labels = join_line_count(labels);
    if (threadIdx.x == 0) {
        char *partial = BUF(char, 2) + (i64)blockIdx.x * PARTIAL_BYTES;
        *(i64 *)partial = right;
        *(i64 *)(partial + 8) = labels;
    }
}
