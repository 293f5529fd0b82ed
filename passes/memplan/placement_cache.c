/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/memplan/memplan.h"

#include "ir/support/map.h"
#include "ir/support/vec.h"

#include <string.h>

typedef struct Placed {
    uint64_t hash[2]; /* of the buffers and the effort */
    MemLayout layout;
} Placed;

struct PlacementCache {
    Pool *pool;
    int n_threads;
    VEC(Placed) placed;
};

PlacementCache *placement_cache_new(Pool *pool, int n_threads)
{
    PlacementCache *cache = POOL_NEW(pool, PlacementCache);
    cache->pool = pool;
    cache->n_threads = n_threads;
    return cache;
}

int placement_cache_threads(const PlacementCache *cache)
{
    return cache->n_threads;
}

static MemLayout copy_layout(Pool *pool, const MemLayout *layout, int n)
{
    MemLayout copy = *layout;
    copy.offset = POOL_ARRAY(pool, (size_t)(n > 0 ? n : 1), int64_t);
    memcpy(copy.offset, layout->offset, (size_t)n * sizeof *copy.offset);
    return copy;
}

static void hash_question(const MemBuffer *buffers, int n, int64_t exact_steps, uint64_t hash[2])
{
    for (uint64_t k = 0; k < 2; k++)
        hash[k] = hash_bytes(buffers, (size_t)n * sizeof *buffers,
                             (k + 1) * 0x9e3779b97f4a7c15u + (uint64_t)exact_steps);
}

bool placement_cache_find(const PlacementCache *cache, Pool *pool, const MemBuffer *buffers, int n,
                          int64_t exact_steps, MemLayout *out)
{
    uint64_t hash[2];
    hash_question(buffers, n, exact_steps, hash);
    for (size_t k = 0; k < cache->placed.len; k++)
        if (memcmp(cache->placed.data[k].hash, hash, sizeof hash) == 0) {
            *out = copy_layout(pool, &cache->placed.data[k].layout, n);
            return true;
        }
    return false;
}

void placement_cache_add(PlacementCache *cache, const MemBuffer *buffers, int n,
                         int64_t exact_steps, const MemLayout *layout)
{
    Placed p = {.layout = copy_layout(cache->pool, layout, n)};
    hash_question(buffers, n, exact_steps, p.hash);
    vec_push(cache->pool, &cache->placed, p);
}
