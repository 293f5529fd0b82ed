/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Entries and their checksums.  cache_folder.c finds the folder and checks who may write it. */
#include "codegen/build/cache.h"

#include "codegen/build/fd.h"
#include "codegen/build/trust.h"
#include "ir/support/map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LENGTH_DIGITS = 16, SUM_DIGITS = 32, MOST_BYTES = 1 << 30 };
#define FORMAT "\nscrimp.cache.1 "
enum { TRAILER = sizeof FORMAT - 1 + LENGTH_DIGITS + 1 + SUM_DIGITS + 1 };

static const char *entry_path(Pool *pool, const Cache *cache, const char *key, const char *suffix)
{
    return pool_printf(pool, "%s/%s.%s", cache->dir, key, suffix);
}

/* The name is part of the sum: a file under another name is not that entry.  A single wrong bit
 * always changes either hash. */
static void write_trailer(const char *key, const char *suffix, const void *data, size_t n,
                          char out[TRAILER + 1])
{
    uint64_t sum[2];
    for (int i = 0; i < 2; i++) {
        sum[i] = hash_bytes(key, strlen(key) + 1, i ? 0x9e3779b97f4a7c15u : 1);
        sum[i] = hash_bytes(suffix, strlen(suffix) + 1, sum[i]);
        sum[i] = hash_bytes(data, n, sum[i]);
    }
    snprintf(out, TRAILER + 1, FORMAT "%016llx %016llx%016llx\n", (unsigned long long)n,
             (unsigned long long)sum[0], (unsigned long long)sum[1]);
}

static const char *check(const char *key, const char *suffix, const char *data, size_t n)
{
    char expected[TRAILER + 1];
    if (n < TRAILER)
        return "it is cut short";
    const char *trailer = data + n - TRAILER;
    if (memcmp(trailer, FORMAT, sizeof FORMAT - 1) != 0)
        return "it does not end as it should";
    write_trailer(key, suffix, data, n - TRAILER, expected);
    return memcmp(trailer, expected, TRAILER) == 0 ? NULL : "its checksum is wrong";
}

/* The open file is looked at, not its name. */
static const char *read_entry(Pool *pool, int fd, size_t *n, const char **fault)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        *fault = "it is not a file";
        return NULL;
    }
    *fault = trust_own(pool, &st);
    if (*fault)
        return NULL;
    const char *data = fd_read(pool, fd, MOST_BYTES, n);
    if (!data)
        *fault = pool_printf(pool, "it cannot be read (%s)", strerror(errno));
    return data;
}

static const char *get(Pool *pool, const Cache *cache, const char *key, const char *suffix,
                       bool use, size_t *bytes, const char **fault)
{
    size_t n = 0;
    *fault = NULL;
    *bytes = 0;
    if (!cache->dir)
        return NULL;
    int fd =
        open(entry_path(pool, cache, key, suffix), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        if (errno != ENOENT)
            *fault = pool_printf(pool, "it cannot be opened (%s)", strerror(errno));
        return NULL;
    }
    const char *data = read_entry(pool, fd, &n, fault);
    if (data)
        *fault = check(key, suffix, data, n);
    if (!*fault && use)
        futimens(fd, NULL); /* used now */
    close(fd);
    if (!*fault)
        *bytes = n - TRAILER;
    return *fault ? NULL : data;
}

const char *cache_get(Pool *pool, const Cache *cache, const char *key, const char *suffix,
                      size_t *bytes, const char **fault)
{
    return get(pool, cache, key, suffix, true, bytes, fault);
}

const char *cache_peek(Pool *pool, const Cache *cache, const char *key, const char *suffix,
                       size_t *bytes, const char **fault)
{
    return get(pool, cache, key, suffix, false, bytes, fault);
}

/* Not synced: what a crash of the system damages, its checksum shows. */
bool cache_put(Pool *pool, const Cache *cache, const char *key, const char *suffix,
               const void *data, size_t bytes, const char **error)
{
    if (!cache->dir)
        return true;
    Pool *scratch = pool_new_child(pool);
    const char *path = entry_path(pool, cache, key, suffix);
    char trailer[TRAILER + 1], *whole = pool_alloc(scratch, bytes + TRAILER);
    write_trailer(key, suffix, data, bytes, trailer);
    memcpy(whole, data, bytes);
    memcpy(whole + bytes, trailer, TRAILER);
    bool ok = fd_replace(scratch, path, whole, bytes + TRAILER, 0600, false);
    if (!ok)
        *error = pool_printf(pool,
                             "cannot write %s: %s (set SCRIMP_CACHE to another folder, or use "
                             "--no-cache)",
                             path, strerror(errno));
    pool_free(scratch);
    return ok;
}
