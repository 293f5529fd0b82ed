/* A thread a column: its partial results in order. */
DEVICE void layernorm_total(const Args a)
{
    const i64 column = (i64)blockIdx.x * THREADS + threadIdx.x;
    const float *partial = BUF(const float, 0) + column;
    if (column >= LENGTH)
        return;
    BUF(float, 1)[column] = join_sum(partial, CHUNKS, PARTIAL_FLOATS);
    BUF(float, 2)[column] = join_sum(partial + LENGTH, CHUNKS, PARTIAL_FLOATS);
}
