/* INNER is 1: a block has COLUMNS channels of a chunk.  Way k takes row k of every four, way 0 also
 * those behind the last four. */
DEVICE void moments_rows(const Args a)
{
    SHARED float first[WAYS][COLUMNS], second[WAYS][COLUMNS];
    const i64 blocks = (CHANNELS + COLUMNS - 1) / COLUMNS, chunk = (i64)blockIdx.x / blocks;
    const int way = threadIdx.x / COLUMNS, column = threadIdx.x % COLUMNS;
    const i64 channel = (i64)blockIdx.x % blocks * COLUMNS + column;
    const i64 from = part_start(chunk, OUTER, CHUNKS), to = part_start(chunk + 1, OUTER, CHUNKS);
    const i64 end = channel < CHANNELS ? to : from;
    const float start = channel < CHANNELS ? START_OF(chunk, channel) : 0.0f;
    TwoSums m = {0.0f, 0.0f};
    i64 row;
    for (row = from; row < end - (WAYS - 1); row += WAYS)
        m = add_element(a, m, (row + way) * PITCH_0 + channel, (row + way) * PITCH_1 + channel, start);
    for (; way == 0 && row < end; row++)
        m = add_element(a, m, row * PITCH_0 + channel, row * PITCH_1 + channel, start);
    first[way][column] = m.first;
    second[way][column] = m.second;
    __syncthreads();
    if (way > 0 || channel >= CHANNELS)
        return;
    m.first = (first[0][column] + first[1][column]) + (first[2][column] + first[3][column]);
    m.second = (second[0][column] + second[1][column]) + (second[2][column] + second[3][column]);
    store_moments(a, m, chunk, channel);
}
