/* INNER is more than 1: a block has a channel of a chunk; along a plane of the channel the partial
 * sums of line.cuh. */
DEVICE void moments_planes(const Args a)
{
    const i64 channel = (i64)blockIdx.x % CHANNELS, chunk = (i64)blockIdx.x / CHANNELS;
    const i64 from = part_start(chunk, OUTER, CHUNKS), to = part_start(chunk + 1, OUTER, CHUNKS);
    const float start = START_OF(chunk, channel);
    TwoSums m = {0.0f, 0.0f};
    for (i64 outer = from; outer < to; outer++) {
        const i64 plane = (outer * CHANNELS + channel) * INNER;
        for (i64 i = threadIdx.x; i < INNER; i += PARTIALS)
            m = add_element(a, m, plane + i, plane + i, start);
    }
    m.first = join_line_sum(m.first);
    m.second = join_line_sum(m.second);
    if (threadIdx.x == 0)
        store_moments(a, m, chunk, channel);
}
