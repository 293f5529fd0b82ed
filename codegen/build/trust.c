/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/build/trust.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINKS_MOST = 40 }; /* as the system's */

static const char *user_name(Pool *pool, uid_t uid)
{
    const struct passwd *p = getpwuid(uid);
    return p ? pool_printf(pool, "%s", p->pw_name) : pool_printf(pool, "user %u", (unsigned)uid);
}

/* Named like the user, who is its only member. */
static bool is_own_group(Pool *pool, gid_t gid)
{
    const char *user = user_name(pool, geteuid());
    const struct group *g = getgrgid(gid);
    if (!g || strcmp(g->gr_name, user) != 0)
        return false;
    for (char **member = g->gr_mem; *member; member++)
        if (strcmp(*member, user) != 0)
            return false;
    return true;
}

static const char *writers(Pool *pool, const struct stat *st)
{
    unsigned mode = st->st_mode & 07777;
    if (mode & S_IWOTH)
        return pool_printf(pool, "others may write it (mode %04o)", mode);
    if ((mode & S_IWGRP) && !is_own_group(pool, st->st_gid))
        return pool_printf(pool, "its group may write it (mode %04o)", mode);
    return NULL;
}

static const char *owner(Pool *pool, const struct stat *st, bool or_root)
{
    if (st->st_uid == geteuid() || (or_root && st->st_uid == 0))
        return NULL;
    return pool_printf(pool, "it belongs to %s", user_name(pool, st->st_uid));
}

const char *trust_own(Pool *pool, const struct stat *st)
{
    const char *why = owner(pool, st, false);
    return why ? why : writers(pool, st);
}

static const char *parts_of_path(Pool *pool, const char *path, int n_links);

/* A link may lead to another. */
static const char *parts_of_link(Pool *pool, const char *path, int n_links)
{
    char target[PATH_MAX];
    const char *slash = strrchr(path, '/');
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n < 0 || n_links == LINKS_MOST)
        return pool_printf(pool, "%s: %s", path, strerror(n < 0 ? errno : ELOOP));
    target[n] = '\0';
    int before = *target != '/' && slash ? (int)(slash + 1 - path) : 0;
    return parts_of_path(pool, pool_printf(pool, "%.*s%s", before, path, target), n_links + 1);
}

static const char *part_of_path(Pool *pool, const char *path, int n_links)
{
    struct stat st;
    if (lstat(path, &st) != 0)
        return pool_printf(pool, "%s: %s", path, strerror(errno));
    const char *why = NULL;
    bool is_link = S_ISLNK(st.st_mode);
    if (is_link)
        why = owner(pool, &st, true);
    else if (!(st.st_mode & S_ISVTX))
        why = writers(pool, &st);
    if (why)
        return pool_printf(pool, "%s lies on the way: %s", path, why);
    return is_link ? parts_of_link(pool, path, n_links) : NULL;
}

/* Every part but the last; the last, too, when it is a link. */
static const char *parts_of_path(Pool *pool, const char *path, int n_links)
{
    struct stat st;
    char *part = pool_strdup(pool, path);
    const char *why =
        lstat(path, &st) == 0 && S_ISLNK(st.st_mode) ? part_of_path(pool, path, n_links) : NULL;
    for (char *slash = part; !why && (slash = strchr(slash, '/')); slash++) {
        char *end = slash == part ? slash + 1 : slash, kept = *end;
        *end = '\0';
        why = part_of_path(pool, part, n_links);
        *end = kept;
    }
    return why;
}

const char *trust_path(Pool *pool, const char *path)
{
    char real[PATH_MAX];
    if (!realpath(path, real))
        return pool_printf(pool, "%s: %s", path, strerror(errno));
    const char *why = parts_of_path(pool, path, 0);
    return why ? why : parts_of_path(pool, real, 0);
}
