#include "codegen/cache.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* NULL: nowhere that is only this user's. */
static const char *default_dir(Pool *pool)
{
    const char *dir = getenv("SCRIMP_CACHE");
    if (dir && *dir)
        return dir;
    dir = getenv("XDG_CACHE_HOME");
    if (dir && *dir)
        return pool_printf(pool, "%s/scrimp", dir);
    dir = getenv("HOME");
    return dir && *dir ? pool_printf(pool, "%s/.cache/scrimp", dir) : NULL;
}

/* mkdir -p */
static bool make_folders(Pool *pool, const char *dir)
{
    char *path = pool_strdup(pool, dir);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return false;
        *slash = '/';
    }
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

static bool open_temporary(Pool *pool, Cache *out, const char **error)
{
    const char *base = getenv("TMPDIR");
    char *dir = pool_printf(pool, "%s/scrimp-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(dir)) {
        *error = pool_printf(pool, "cannot make a temporary folder %s: %s (set TMPDIR)", dir,
                             strerror(errno));
        return false;
    }
    *out = (Cache){.dir = dir, .temporary = true};
    return true;
}

bool cache_open(Pool *pool, const char *dir, bool temporary, Cache *out, const char **error)
{
    dir = dir ? dir : default_dir(pool);
    if (temporary || !dir)
        return open_temporary(pool, out, error);
    *out = (Cache){.dir = dir};
    if (make_folders(pool, out->dir) && access(out->dir, W_OK) == 0)
        return true;
    *error =
        pool_printf(pool,
                    "cannot write the kernel cache %s: %s (set SCRIMP_CACHE to another folder, "
                    "or use --no-cache)",
                    out->dir, strerror(errno));
    return false;
}

void cache_close(const Cache *cache)
{
    if (!cache->temporary)
        return;
    DIR *d = opendir(cache->dir);
    if (d) {
        for (struct dirent *e; (e = readdir(d));)
            unlinkat(dirfd(d), e->d_name, 0);
        closedir(d);
    }
    rmdir(cache->dir);
}

const char *cache_path(Pool *pool, const Cache *cache, const char *key, const char *suffix)
{
    return pool_printf(pool, "%s/%s.%s", cache->dir, key, suffix);
}

bool cache_has(const char *path)
{
    return access(path, R_OK) == 0;
}

const char *cache_temporary(Pool *pool, const char *path)
{
    return pool_printf(pool, "%s.%ld.tmp", path, (long)getpid());
}
