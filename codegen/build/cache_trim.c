/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Listing the cache, and removing what is old or too much. */
#include "codegen/build/cache.h"

#include "ir/support/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY_DIGITS = 32 };
static const char *const suffixes[] = {"o", "so", "plans", "costs", "tuning"};
static const double TEMPORARY_DAYS = 1.0 / 24;

/* KEY.SUFFIX, or what a writer of one left: KEY.SUFFIX.NUMBER.tmp.  NULL: not ours. */
static const char *suffix_of(const char *name)
{
    const char *rest = name + strspn(name, "0123456789abcdef");
    if (rest - name != KEY_DIGITS || *rest != '.')
        return NULL;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        size_t n = strlen(suffixes[i]);
        const char *after = rest + 1 + n;
        if (strncmp(rest + 1, suffixes[i], n) != 0)
            continue;
        if (!*after)
            return suffixes[i];
        if (*after == '.' && strcmp(after + 1 + strspn(after + 1, "0123456789"), ".tmp") == 0)
            return "tmp";
    }
    return NULL;
}

static int by_use(const void *a, const void *b)
{
    const CacheEntry *x = a, *y = b;
    if (x->used.tv_sec != y->used.tv_sec)
        return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    if (x->used.tv_nsec != y->used.tv_nsec)
        return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
    return strcmp(x->name, y->name);
}

bool cache_list(Pool *pool, const Cache *cache, const char *suffix, CacheList *out,
                const char **error)
{
    VEC(CacheEntry) entries = {0};
    *out = (CacheList){0};
    DIR *d = opendir(cache->dir);
    if (!d && errno == ENOENT)
        return true;
    if (!d) {
        *error = pool_printf(pool, "cannot read %s: %s", cache->dir, strerror(errno));
        return false;
    }
    for (struct dirent *e; (e = readdir(d));) {
        struct stat st;
        const char *kind = suffix_of(e->d_name);
        if (!kind || (suffix && strcmp(kind, suffix) != 0) ||
            fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || S_ISDIR(st.st_mode))
            continue;
        vec_push(pool, &entries,
                 (CacheEntry){pool_strdup(pool, e->d_name),
                              pool_strndup(pool, e->d_name, KEY_DIGITS), kind, st.st_size,
                              st.st_mtim});
        out->bytes += st.st_size;
    }
    closedir(d);
    out->entry = entries.data;
    out->n = entries.len;
    if (out->n)
        qsort(out->entry, out->n, sizeof *out->entry, by_use);
    return true;
}

bool cache_unlink(Pool *pool, const Cache *cache, const CacheEntry *entry)
{
    return unlink(pool_printf(pool, "%s/%s", cache->dir, entry->name)) == 0 || errno == ENOENT;
}

static double seconds(struct timespec t)
{
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double cache_age(const CacheEntry *entry, struct timespec now)
{
    return (seconds(now) - seconds(entry->used)) / 86400;
}

static bool has_to_go(const Cache *cache, const CacheEntry *e, CacheLimits limits, int64_t bytes)
{
    double days = cache_age(e, cache->opened); /* below 0: used since then */
    if (strcmp(e->suffix, "tmp") == 0)
        return days > TEMPORARY_DAYS;
    return days > 0 &&
           ((limits.days > 0 && days > limits.days) || (limits.bytes > 0 && bytes > limits.bytes));
}

void cache_trim(Pool *pool, const Cache *cache, const char *suffix, CacheLimits limits)
{
    CacheList list;
    const char *error;
    pool = pool_new_child(pool);
    if (cache->dir && cache_list(pool, cache, suffix, &list, &error))
        for (size_t i = 0; i < list.n; i++)
            if (has_to_go(cache, &list.entry[i], limits, list.bytes) &&
                cache_unlink(pool, cache, &list.entry[i]))
                list.bytes -= list.entry[i].bytes;
    pool_free(pool);
}
