/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/build/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char PREFIX[] = "scrimp-build-";
enum { RANDOM_LETTERS = 6, ATTEMPTS = 100, MAX_DEPTH = 8 };

static const char *base_folder(void)
{
    const char *base = getenv("TMPDIR");
    return base && *base ? base : "/tmp";
}

/* --- removing --- */

static bool remove_tree(int parent, const char *name, int depth);

static void empty_folder(int fd, int depth)
{
    DIR *d = fdopendir(fd);
    if (!d) {
        close(fd);
        return;
    }
    for (struct dirent *e; (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            unlinkat(dirfd(d), e->d_name, 0) != 0)
            remove_tree(dirfd(d), e->d_name, depth + 1);
    closedir(d);
}

static bool remove_tree(int parent, const char *name, int depth)
{
    int fd = depth < MAX_DEPTH
                 ? openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                 : -1;
    if (fd >= 0)
        empty_folder(fd, depth);
    return unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

/* A child that was killed may be in the middle of making a file. */
static void remove_folder(int parent, const char *name)
{
    for (int i = 0; i < ATTEMPTS && !remove_tree(parent, name, 0); i++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
}

/* --- what others left --- */

static bool is_scratch(const char *name)
{
    size_t prefix = sizeof PREFIX - 1;
    return strncmp(name, PREFIX, prefix) == 0 && strlen(name) == prefix + RANDOM_LETTERS;
}

/* A folder whose lock is free has lost its owner.  One that was made a moment ago and is not locked
 * yet may go, too: its owner makes another. */
static void sweep_one(int parent, const char *name)
{
    struct stat st;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0)
        remove_folder(parent, name);
    close(fd);
}

static void sweep(void)
{
    DIR *d = opendir(base_folder());
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));)
        if (is_scratch(e->d_name))
            sweep_one(dirfd(d), e->d_name);
    closedir(d);
}

/* --- this process's --- */

/* False: it was swept before it was locked.  A file system without locks sweeps nothing. */
static bool lock_folder(const char *dir, int *fd)
{
    struct stat st;
    *fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*fd < 0)
        return false;
    bool ours = flock(*fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (ours && fstat(*fd, &st) == 0 && st.st_nlink > 0)
        return true;
    close(*fd);
    return false;
}

static bool make_folder(Pool *pool, Scratch *s, const char **error)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        char *dir = pool_printf(pool, "%s/%sXXXXXX", base_folder(), PREFIX);
        if (!mkdtemp(dir)) {
            *error = pool_printf(pool, "cannot make a temporary folder in %s: %s (set TMPDIR)",
                                 base_folder(), strerror(errno));
            return false;
        }
        s->dir = dir;
        if (lock_folder(dir, &s->lock))
            return true;
    }
    *error = pool_printf(pool, "temporary folders in %s vanish (set TMPDIR)", base_folder());
    return false;
}

bool scratch_open(Pool *pool, Scratch *out, const char **error)
{
    *out = (Scratch){.lock = -1, .hold = hold_begin()};
    sweep();
    if (make_folder(pool, out, error))
        return true;
    hold_end(&out->hold);
    return false;
}

void scratch_close(const Scratch *s)
{
    remove_folder(AT_FDCWD, s->dir);
    close(s->lock);
    hold_end(&s->hold);
}

const char *scratch_path(Pool *pool, const Scratch *s, const char *name, const char *suffix)
{
    return pool_printf(pool, "%s/%s.%s", s->dir, name, suffix);
}
