/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The kernel cache: a folder of this user's, and in it entries KEY.SUFFIX: objects (o), steps (so),
 * plans, costs and tuned kernels (tuning).  An entry is written under a temporary name and renamed,
 * so processes may share a cache; it ends with its length and a checksum, and is used only when
 * both are right and nobody else could have written it.  Readers get a copy: an entry may be
 * removed at any time. */
#ifndef SCRIMP_CODEGEN_BUILD_CACHE_H
#define SCRIMP_CODEGEN_BUILD_CACHE_H

#include "ir/support/pool.h"

#include <time.h>

/* What stays: entries that were used within so many days, and of those the ones used last, up to so
 * many bytes.  0 = no limit. */
typedef struct CacheLimits {
    int64_t bytes;
    double days;
} CacheLimits;

typedef struct Cache {
    const char *dir; /* NULL: there is none, nothing is found or kept */
    CacheLimits limits;
    struct timespec opened;
} Cache;

/* The folder that dir (NULL or "" = $SCRIMP_CACHE, $XDG_CACHE_HOME/scrimp, ~/.cache/scrimp) names;
 * NULL when none of these is given.  HOME counts only when it belongs to this user: under sudo the
 * home folder that the system's list of users names is taken. */
const char *cache_folder(Pool *pool, const char *dir);
/* Opens it, made with mode 0700 when missing, with the limits of $SCRIMP_CACHE_SIZE and
 * $SCRIMP_CACHE_DAYS.  none: no cache is wanted.  False and *error when it cannot be used, or when
 * another user owns it or may write it. */
bool cache_open(Pool *pool, const char *dir, bool none, Cache *out, const char **error);
/* The same without making it: one that is missing is empty. */
bool cache_look(Pool *pool, const char *dir, Cache *out, const char **error);

/* The contents of an entry, which counts as used now; NULL when there is none.  *fault: why one
 * that is there must not be used, else NULL. */
const char *cache_get(Pool *pool, const Cache *cache, const char *key, const char *suffix,
                      size_t *bytes, const char **fault);
/* The same, but it does not count as used. */
const char *cache_peek(Pool *pool, const Cache *cache, const char *key, const char *suffix,
                       size_t *bytes, const char **fault);
/* False and *error when it cannot be written. */
bool cache_put(Pool *pool, const Cache *cache, const char *key, const char *suffix,
               const void *data, size_t bytes, const char **error);

/* --- housekeeping (cache_trim.c) --- */

typedef struct CacheEntry {
    const char *name, *key, *suffix; /* suffix "tmp": what a killed process left */
    int64_t bytes;
    struct timespec used;
} CacheEntry;

typedef struct CacheList {
    CacheEntry *entry; /* used longest ago first */
    size_t n;
    int64_t bytes;
} CacheList;

/* Entries only: nothing else in the folder is looked at or touched.  suffix NULL = all. */
bool cache_list(Pool *pool, const Cache *cache, const char *suffix, CacheList *out,
                const char **error);
/* Removes what the limits do not allow, but nothing that was used since the cache was opened, and
 * temporary files an hour old. */
void cache_trim(Pool *pool, const Cache *cache, const char *suffix, CacheLimits limits);
bool cache_unlink(Pool *pool, const Cache *cache, const CacheEntry *entry);
/* Days since an entry was used. */
double cache_age(const CacheEntry *entry, struct timespec now);

#endif
