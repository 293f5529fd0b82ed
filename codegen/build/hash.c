/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/build/hash.h"

#include "ir/support/map.h"

/* Two independent 64-bit hashes: a chance collision among a million kernels is below 1e-26, and
 * nobody but the user writes into the cache. */
const char *content_key(Pool *pool, const char *text, size_t length)
{
    uint64_t a = hash_bytes(text, length, 0);
    uint64_t b = hash_bytes(text, length, 0x9e3779b97f4a7c15u ^ length);
    return pool_printf(pool, "%016llx%016llx", (unsigned long long)a, (unsigned long long)b);
}
