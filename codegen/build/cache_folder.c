/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where the cache is, and whether it is this user's alone. */
#include "codegen/build/cache.h"

#include "codegen/build/trust.h"
#include "ir/support/byte_size.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const CacheLimits default_limits = {(int64_t)2 << 30, 30};

static const char *setting(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

static bool is_own_folder(const char *dir)
{
    struct stat st;
    return dir && stat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

/* sudo keeps HOME: what root writes there its owner could not remove, and what root loads from
 * there its owner could have written. */
static const char *own_home(void)
{
    const char *home = setting("HOME");
    if (!home || is_own_folder(home))
        return home;
    const struct passwd *p = getpwuid(geteuid());
    return p && is_own_folder(p->pw_dir) ? p->pw_dir : NULL;
}

const char *cache_folder(Pool *pool, const char *dir)
{
    if (dir && *dir)
        return dir;
    dir = setting("SCRIMP_CACHE");
    if (dir)
        return dir;
    dir = setting("XDG_CACHE_HOME");
    if (dir)
        return pool_printf(pool, "%s/scrimp", dir);
    dir = own_home();
    return dir ? pool_printf(pool, "%s/.cache/scrimp", dir) : NULL;
}

static bool read_limits(Pool *pool, CacheLimits *out, const char **error)
{
    const char *size = setting("SCRIMP_CACHE_SIZE"), *days = setting("SCRIMP_CACHE_DAYS");
    double bytes = 0;
    bool bare;
    char *end;
    *out = default_limits;
    if (size && !byte_size_parse(size, &bytes, &bare)) {
        *error = pool_printf(
            pool, "SCRIMP_CACHE_SIZE=%s: write bytes, such as 500MiB, or 0 for no limit", size);
        return false;
    }
    if (size)
        out->bytes = (int64_t)bytes;
    out->days = days ? strtod(days, &end) : out->days;
    if (days && (end == days || *end || !isfinite(out->days) || out->days < 0)) {
        *error = pool_printf(
            pool, "SCRIMP_CACHE_DAYS=%s: write a number of days, or 0 for no limit", days);
        return false;
    }
    return true;
}

/* mkdir -p; what is made is for this user only, whatever the umask. */
static bool make_folders(Pool *pool, const char *dir)
{
    char *path = pool_strdup(pool, dir);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0700) != 0 && errno != EEXIST)
            return false;
        *slash = '/';
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

static bool refuse(Pool *pool, const char *dir, const char *why, const char *way,
                   const char **error)
{
    *error =
        pool_printf(pool,
                    "cannot use the kernel cache %s: %s (%sset SCRIMP_CACHE to another folder, "
                    "or use --no-cache)",
                    dir, why, way);
    return false;
}

/* Code from the cache is run: whoever can write there could run anything as this user. */
static bool is_safe(Pool *pool, const char *dir, const char **error)
{
    struct stat st;
    if (stat(dir, &st) != 0)
        return refuse(pool, dir, strerror(errno), "", error);
    if (!S_ISDIR(st.st_mode))
        return refuse(pool, dir, strerror(ENOTDIR), "", error);
    const char *why = trust_own(pool, &st);
    if (why) {
        bool ours = st.st_uid == geteuid();
        return refuse(pool, dir, why, ours ? "remove it, `chmod go-w` it, " : "", error);
    }
    why = trust_path(pool, dir);
    return !why || refuse(pool, dir, why, "", error);
}

static bool open_folder(Pool *pool, const char *dir, bool make, Cache *out, const char **error)
{
    char real[PATH_MAX];
    *out = (Cache){0};
    /* The clock that files are stamped by: the precise one is milliseconds ahead of it, and what is
     * used right away would seem to have been used before. */
    clock_gettime(CLOCK_REALTIME_COARSE, &out->opened);
    if (!dir)
        return true;
    if (!read_limits(pool, &out->limits, error))
        return false;
    out->dir = dir;
    if (!make && access(dir, F_OK) != 0 && errno == ENOENT)
        return true;
    if (make && !make_folders(pool, dir))
        return refuse(pool, dir, strerror(errno), "", error);
    if (!is_safe(pool, dir, error))
        return false;
    if (access(dir, W_OK | X_OK) != 0 || !realpath(dir, real))
        return refuse(pool, dir, strerror(errno), "", error);
    out->dir = pool_strdup(pool, real);
    return true;
}

bool cache_open(Pool *pool, const char *dir, bool none, Cache *out, const char **error)
{
    return open_folder(pool, none ? NULL : cache_folder(pool, dir), true, out, error);
}

bool cache_look(Pool *pool, const char *dir, Cache *out, const char **error)
{
    return open_folder(pool, cache_folder(pool, dir), false, out, error);
}
