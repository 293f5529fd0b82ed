/* Folders and files of the kernel cache.  Everything is written under a temporary name and renamed,
 * so several processes may share a cache. */
#ifndef SCRIMP_CODEGEN_CACHE_H
#define SCRIMP_CODEGEN_CACHE_H

#include "ir/support/pool.h"

typedef struct Cache {
    const char *dir;
    bool temporary; /* removed by cache_close */
} Cache;

/* dir NULL = $SCRIMP_CACHE, $XDG_CACHE_HOME/scrimp, ~/.cache/scrimp.  temporary, or none of
 * these: a fresh folder under $TMPDIR. */
bool cache_open(Pool *pool, const char *dir, bool temporary, Cache *out, const char **error);
void cache_close(const Cache *cache);
/* DIR/KEY.SUFFIX */
const char *cache_path(Pool *pool, const Cache *cache, const char *key, const char *suffix);
bool cache_has(const char *path);
/* A name beside path that no other process uses, to be renamed to it. */
const char *cache_temporary(Pool *pool, const char *path);

#endif
