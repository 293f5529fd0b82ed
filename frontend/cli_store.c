#include "frontend/cli_store.h"

#include "codegen/cache.h"
#include "frontend/cli_session.h"
#include "ir/support/vec.h"
#include "runtime/file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char SUFFIX[] = "plans";
static const int64_t MOST_BYTES = (int64_t)64 << 20;

typedef struct Store {
    Pool *pool;
    Cache cache;
} Store;

/* --- what has to go --- */

typedef struct Stored {
    const char *path;
    int64_t bytes;
    struct timespec used;
} Stored;

typedef struct Listing {
    Pool *pool;
    VEC(Stored) files;
    int64_t bytes;
} Listing;

static bool list_file(void *user, const char *dir, const char *name, RtError *err)
{
    Listing *l = user;
    struct stat st;
    const char *dot = strrchr(name, '.'), *path = pool_printf(l->pool, "%s/%s", dir, name);
    (void)err;
    if (!dot || strcmp(dot + 1, SUFFIX) != 0 || stat(path, &st) != 0)
        return true;
    vec_push(l->pool, &l->files, (Stored){path, st.st_size, st.st_mtim});
    l->bytes += st.st_size;
    return true;
}

static int by_use(const void *a, const void *b)
{
    const Stored *x = a, *y = b;
    if (x->used.tv_sec != y->used.tv_sec)
        return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    if (x->used.tv_nsec != y->used.tv_nsec)
        return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
    return strcmp(x->path, y->path);
}

static void make_room(const Store *s)
{
    RtError err;
    Listing l = {.pool = pool_new_child(s->pool)};
    if (folder_each(s->cache.dir, list_file, &l, &err) && l.bytes > MOST_BYTES)
        qsort(l.files.data, l.files.len, sizeof *l.files.data, by_use);
    for (size_t i = 0; i + 1 < l.files.len && l.bytes > MOST_BYTES; i++) {
        unlink(l.files.data[i].path);
        l.bytes -= l.files.data[i].bytes;
    }
    pool_free(l.pool);
}

/* --- one plan --- */

static const char *get(void *user, Pool *pool, const char *key, size_t *bytes)
{
    const Store *s = user;
    FileBytes file;
    RtError err;
    const char *path = cache_path(pool, &s->cache, key, SUFFIX);
    if (!file_read(path, MOST_BYTES, &file, &err))
        return NULL;
    char *data = pool_alloc(pool, (size_t)file.bytes + 1);
    memcpy(data, file.data, (size_t)file.bytes);
    *bytes = (size_t)file.bytes;
    file_release(&file);
    utimensat(AT_FDCWD, path, NULL, 0); /* used now */
    return data;
}

/* A full disk costs the next run its time, not this one its plan. */
static void put(void *user, const char *key, const char *data, size_t bytes)
{
    const Store *s = user;
    RtError err;
    Pool *pool = pool_new_child(s->pool);
    if ((int64_t)bytes <= MOST_BYTES / 4 &&
        file_replace(cache_path(pool, &s->cache, key, SUFFIX), data, (int64_t)bytes, &err))
        make_room(s);
    pool_free(pool);
}

const RematStore *cli_store(Cli *cli)
{
    const char *error;
    const CodegenOptions o = session_codegen_options(cli);
    Store *s = POOL_NEW(cli->pool, Store);
    s->pool = cli->pool;
    if (o.no_cache || !cli_takes(cli, "cache") ||
        !cache_open(cli->pool, o.cache_dir, false, &s->cache, &error))
        return NULL;
    if (s->cache.temporary) { /* nothing would be found there again */
        cache_close(&s->cache);
        return NULL;
    }
    RematStore *store = POOL_NEW(cli->pool, RematStore);
    *store = (RematStore){.get = get, .put = put, .user = s};
    return store;
}
