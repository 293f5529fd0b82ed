#include "real.cuh"
#include "two_sums.cuh"
/* Two sums by channel of [OUTER, CHANNELS, INNER], of CHUNKS parts of the outer elements: of
 * differences from the channel's first element in the chunk and of their squares (the statistics of
 * batch norm), or of dy (x - mean) and of dy (its gradients).  Partial results are first[CHANNELS],
 * second[CHANNELS]. */
#if IS_STATS
#define X(at) VALUE(0, BUF(const REAL(0), 0)[at])
#define START_OF(chunk, channel) X(first_of(chunk, channel)) /* what differences are from */
#else
#define X(at) VALUE(1, BUF(const REAL(1), 1)[at])
#define START_OF(chunk, channel) BUF(const float, 2)[channel]
#endif

/* The element of a channel with which a chunk begins, or of an empty one some other that there is. */
DEVICE i64 first_of(i64 chunk, i64 channel)
{
    const i64 from = part_start(chunk, OUTER, CHUNKS);
    return (from < OUTER ? from : OUTER - 1) * OUTER_PITCH + channel * INNER;
}

/* x_0, x_1: elements of buffers 0 and 1. */
DEVICE TwoSums add_values(TwoSums m, float x_0, float x_1, float start)
{
#if IS_STATS
    const float d = x_0 - start;
    m.first = m.first + d;
    m.second = m.second + d * d;
    (void)x_1;
#else
    m.first = m.first + x_0 * (x_1 - start);
    m.second = m.second + x_0;
#endif
    return m;
}

/* at_0, at_1: the element in buffers 0 and 1. */
DEVICE TwoSums add_element(const Args a, TwoSums m, i64 at_0, i64 at_1, float start)
{
#if IS_STATS
    (void)at_1;
    return add_values(m, X(at_0), 0.0f, start);
#else
    return add_values(m, VALUE(0, BUF(const REAL(0), 0)[at_0]), X(at_1), start);
#endif
}

/* Elements of a channel in a chunk. */
DEVICE float chunk_count(i64 chunk)
{
    return (float)((part_start(chunk + 1, OUTER, CHUNKS) - part_start(chunk, OUTER, CHUNKS)) * INNER);
}

/* Of statistics: sums of differences and squares become the mean and the sum of squared deviations.
 * An empty chunk gives zeros; squares that overflow give infinity, not NaN. */
DEVICE void store_moments(const Args a, TwoSums m, i64 chunk, i64 channel)
{
    float *partial = BUF(float, WORK_BUF) + chunk * PARTIAL_FLOATS;
#if IS_STATS
    const float n = s_max(chunk_count(chunk), 1.0f), mean = m.first / n;
    const float rest = m.second - m.first * mean;
    m.first = mean;
    m.second = m.second == INFINITE ? INFINITE : s_max(rest, 0.0f);
#endif
    partial[channel] = m.first;
    partial[CHANNELS + channel] = m.second;
}
