#include "real.cuh"
/* Mean and variance: chunks are joined as by Chan, Golub and LeVeque (1983), a thread a channel. */
DEVICE void moments_join_stats(const Args a)
{
    const i64 channel = (i64)blockIdx.x * THREADS + threadIdx.x;
    const float *partial = BUF(const float, WORK_BUF) + channel;
    Total means = {0.0f, 0.0f}, parts = {0.0f, 0.0f};
    float mean;
    if (channel >= CHANNELS)
        return;
    for (i64 chunk = 0; chunk < CHUNKS; chunk++)
        means = total_plus(means, chunk_count(chunk) * SHARE * partial[chunk * PARTIAL_FLOATS]);
    mean = total_of(means);
    for (i64 chunk = 0; chunk < CHUNKS; chunk++) {
        const float n = chunk_count(chunk), away = partial[chunk * PARTIAL_FLOATS] - mean;
        const float squares = partial[chunk * PARTIAL_FLOATS + CHANNELS];
        const float between = n == 0.0f ? 0.0f : n * SHARE * (away * away);
        parts = total_plus(parts, squares * SHARE + between);
    }
    BUF(float, 2)[channel] = mean + X(channel * INNER);
    BUF(float, 3)[channel] = total_of(parts);
}
