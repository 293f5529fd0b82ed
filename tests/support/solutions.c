/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/solutions.h"

#include "ir/support/map.h"
#include "ir/support/vec.h"

#include <string.h>

typedef struct Entry {
    const char *data;
    size_t bytes;
} Entry;

/* Of all that the process has asked for. */
static struct Kept {
    Pool *pool;
    Map index; /* of entries by key */
    VEC(Entry) entries;
} kept;

static const char *kept_get(void *user, Pool *pool, const char *key, size_t *bytes)
{
    const struct Kept *k = user;
    const uint64_t *at = map_find(&k->index, key);
    (void)pool;
    *bytes = at ? k->entries.data[*at].bytes : 0;
    return at ? k->entries.data[*at].data : NULL;
}

static void kept_put(void *user, const char *key, const char *data, size_t bytes)
{
    struct Kept *k = user;
    char *copy = pool_alloc(k->pool, bytes + 1);
    memcpy(copy, data, bytes);
    map_set(&k->index, key, k->entries.len);
    vec_push(k->pool, &k->entries, ((Entry){copy, bytes}));
}

static const SolutionStore store = {kept_get, kept_put, &kept};

SolutionCache *solutions_kept(Pool *pool)
{
    if (!kept.pool) {
        kept.pool = pool_new();
        kept.index = map_new(kept.pool);
    }
    return solution_cache_new(pool, &store);
}
