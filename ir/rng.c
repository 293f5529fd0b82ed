/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Philox4x32-10, the counter generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers:
 * as easy as 1, 2, 3" (SC 2011), and the one way scrimp uses it. */
#include "ir/eval.h"

void philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0;
        uint64_t b = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

/* counter = (index, step), key = seed + key * 0x9E3779B97F4A7C15 (so that generated code adds one
 * constant to the seed), each as low word, high word; whoever needs one word takes the first, but
 * dropout, which draws for every element of a training step, uses all four. */
void rng_words(uint64_t seed, uint64_t step, uint64_t key, uint64_t index, uint32_t out[4])
{
    uint64_t mixed = seed + key * 0x9E3779B97F4A7C15u;
    uint32_t counter[4] = {(uint32_t)index, (uint32_t)(index >> 32), (uint32_t)step,
                           (uint32_t)(step >> 32)};
    uint32_t words[2] = {(uint32_t)mixed, (uint32_t)(mixed >> 32)};
    philox4x32(counter, words, out);
}

uint32_t rng_bits(uint64_t seed, uint64_t step, uint64_t key, uint64_t index)
{
    uint32_t out[4];
    rng_words(seed, step, key, index, out);
    return out[0];
}

uint32_t dropout_bits(uint64_t seed, uint64_t step, uint64_t key, uint64_t index)
{
    uint32_t out[4];
    rng_words(seed, step, key, index / 4, out);
    return out[index % 4];
}
