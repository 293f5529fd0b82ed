/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fixed-size bit sets on a pool. */
#ifndef SCRIMP_IR_SUPPORT_BITSET_H
#define SCRIMP_IR_SUPPORT_BITSET_H

#include "ir/support/pool.h"

typedef struct Bitset {
    uint64_t *words;
    size_t n_bits;
} Bitset;

static inline Bitset bitset_new(Pool *pool, size_t n_bits)
{
    Bitset b = {POOL_ARRAY(pool, (n_bits + 63) / 64, uint64_t), n_bits};
    return b;
}
static inline void bitset_add(Bitset *b, size_t i)
{
    b->words[i / 64] |= (uint64_t)1 << (i % 64);
}
static inline void bitset_remove(Bitset *b, size_t i)
{
    b->words[i / 64] &= ~((uint64_t)1 << (i % 64));
}
static inline bool bitset_has(const Bitset *b, size_t i)
{
    return b->words[i / 64] >> (i % 64) & 1;
}
/* a |= b, sets of equal size. */
static inline void bitset_union(Bitset *a, const Bitset *b)
{
    for (size_t i = 0; i < (a->n_bits + 63) / 64; i++)
        a->words[i] |= b->words[i];
}

#endif
