#include "real.cuh"
/* The mean of a chunk, less start, with which the first one begins; of an empty one 0. */
DEVICE float chunk_mean(const Args a, i64 chunk, i64 channel, float start)
{
    const float from = START_OF(chunk, channel) - start;
    const float mean = from + BUF(const float, WORK_BUF)[chunk * PARTIAL_FLOATS + channel];
    return chunk_count(chunk) == 0.0f ? 0.0f : mean;
}

/* Mean and variance: chunks are joined as by Chan, Golub and LeVeque (1983), a thread a channel. */
DEVICE void moments_join_stats(const Args a)
{
    const i64 channel = (i64)blockIdx.x * THREADS + threadIdx.x;
    const float *squares = BUF(const float, WORK_BUF) + CHANNELS + channel;
    Total means = {0.0f, 0.0f}, parts = {0.0f, 0.0f};
    float mean, start;
    if (channel >= CHANNELS)
        return;
    start = START_OF(0, channel);
    for (i64 chunk = 0; chunk < CHUNKS; chunk++)
        means = total_plus(means, chunk_count(chunk) * SHARE * chunk_mean(a, chunk, channel, start));
    mean = total_of(means);
    for (i64 chunk = 0; chunk < CHUNKS; chunk++) {
        const float n = chunk_count(chunk), away = chunk_mean(a, chunk, channel, start) - mean;
        const float between = n == 0.0f ? 0.0f : n * SHARE * (away * away);
        parts = total_plus(parts, squares[chunk * PARTIAL_FLOATS] * SHARE + between);
    }
    BUF(float, 2)[channel] = mean + start;
    BUF(float, 3)[channel] = total_of(parts);
}
