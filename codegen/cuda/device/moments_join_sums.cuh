/* Sums of dy (x - mean) / sigma and of dy: a thread a channel. */
DEVICE void moments_join_sums(const Args a)
{
    const i64 channel = (i64)blockIdx.x * THREADS + threadIdx.x;
    const float *partial = BUF(const float, WORK_BUF) + channel;
    float first;
    if (channel >= CHANNELS)
        return;
    first = join_sum(partial, CHUNKS, PARTIAL_FLOATS);
    BUF(float, 5)[channel] = first / sqrtf(BUF(const float, 3)[channel] + EPS);
    BUF(float, 6)[channel] = join_sum(partial + CHANNELS, CHUNKS, PARTIAL_FLOATS);
}
