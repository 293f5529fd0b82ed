#include "block_sum.cuh"

/* The sum modulo 2^64 that `verify` compares: of a chunk of the elements, and of the chunks. */
typedef unsigned long long u64;

BLOCK_SUM(checksum_join, u64)

DEVICE void checksum_chunk(const Args a)
{
    const i64 to = part_start((i64)blockIdx.x + 1, ELEMENTS, CHUNKS);
    u64 hash = 0;
    i64 i;
    for (i = part_start(blockIdx.x, ELEMENTS, CHUNKS) + threadIdx.x; i < to; i += THREADS)
        hash += ((u64)BUF(const u32, 0)[i] + 1) * ((2 * (u64)i + 1) * FACTOR);
    hash = checksum_join(hash);
    if (threadIdx.x == 0)
        *(u64 *)(BUF(char, 1) + blockIdx.x * PARTIAL_BYTES) = hash;
}

DEVICE void checksum_total(const Args a)
{
    u64 hash = 0;
    int k;
    if (threadIdx.x != 0)
        return;
    for (k = 0; k < CHUNKS; k++)
        hash += *(const u64 *)(BUF(const char, 0) + k * PARTIAL_BYTES);
    BUF(u32, 1)[0] = (u32)hash;
    BUF(u32, 1)[1] = (u32)(hash >> 32);
}
