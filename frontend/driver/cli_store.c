/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_store.h"
#include "frontend/driver/cli_codegen.h"

#include "codegen/build/cache.h"
#include "passes/remat/cache/solution_cache.h"

#include <stdio.h>

static const char SUFFIX[] = "plans";
static const int64_t MOST_BYTES = (int64_t)64 << 20; /* of all plans */

typedef struct Store {
    Pool *pool;
    Cache cache;
} Store;

static const char *get(void *user, Pool *pool, const char *key, size_t *bytes)
{
    const Store *s = user;
    const char *fault, *data = cache_get(pool, &s->cache, key, SUFFIX, bytes, &fault);
    if (fault)
        fprintf(stderr,
                "note: the plan %s.%s in the cache %s cannot be used (%s); it is searched "
                "for again\n",
                key, SUFFIX, s->cache.dir, fault);
    return data;
}

/* A full disk costs the next run its time, not this one its plan. */
static void put(void *user, const char *key, const char *data, size_t bytes)
{
    const Store *s = user;
    const char *error;
    Pool *pool = pool_new_child(s->pool);
    if ((int64_t)bytes <= MOST_BYTES / 4 &&
        cache_put(pool, &s->cache, key, SUFFIX, data, bytes, &error)) {
        cache_trim(pool, &s->cache, SUFFIX, (CacheLimits){.bytes = MOST_BYTES});
        cache_trim(pool, &s->cache, NULL, s->cache.limits);
    }
    pool_free(pool);
}

static void warn(const Cli *cli, const char *error)
{
    if (!cli->verb->compiles) /* those that do end with the error */
        fprintf(stderr, "note: plans are not kept: %s\n", error);
}

const SolutionStore *cli_store(Cli *cli)
{
    const char *error;
    const CodegenOptions o = cli_codegen_options(cli, NULL);
    Store *s = POOL_NEW(cli->pool, Store);
    s->pool = cli->pool;
    if (o.no_cache || !cli_takes(cli, "cache"))
        return NULL;
    if (!cache_open(cli->pool, o.cache_dir, false, &s->cache, &error)) {
        warn(cli, error);
        return NULL;
    }
    if (!s->cache.dir)
        return NULL;
    SolutionStore *store = POOL_NEW(cli->pool, SolutionStore);
    *store = (SolutionStore){.get = get, .put = put, .user = s};
    return store;
}
