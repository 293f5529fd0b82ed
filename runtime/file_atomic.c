/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files that are replaced at once, and links: what was there before stays until then. */
#include "runtime/file_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

enum { WRITE_AHEAD_BYTES = 16 << 20 };

/* A new name is durable once its folder is synced.  Some file systems cannot sync folders, and one
 * that may be written but not read cannot be opened. */
bool io_sync_folder(const char *path, RtError *err)
{
    char *copy = rt_alloc((int64_t)strlen(path) + 1, 1, err);
    if (!copy)
        return false;
    strcpy(copy, path);
    int fd = io_open(dirname(copy), O_RDONLY | O_DIRECTORY, 0);
    free(copy);
    bool ok = fd >= 0 ? io_sync(fd) == 0 || errno == EINVAL || errno == ENOTSUP : errno == EACCES;
    if (!ok)
        rt_error(err, "%s is written, but its folder cannot be synced: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return ok;
}

static bool write_failed(AtomicFile *file, const char *what, RtError *err)
{
    rt_error(err, "cannot %s %s: %s; what was there before is untouched", what, file->path,
             strerror(errno));
    atomic_abort(file);
    return false;
}

/* Names that are not taken: process numbers repeat in containers that share a folder. */
enum { TEMPORARY_ROOM = 32, TEMPORARY_ATTEMPTS = 100 };

static uint64_t random_number(void)
{
    uint64_t x;
    struct timespec t;
    if (getrandom(&x, sizeof x, GRND_NONBLOCK) == (ssize_t)sizeof x)
        return x;
    clock_gettime(CLOCK_REALTIME, &t); /* early at boot; a name that is taken is tried again */
    return (uint64_t)t.tv_nsec << 32 ^ (uint64_t)getpid() << 16 ^ (uint64_t)t.tv_sec;
}

/* PATH.NUMBER.tmp into room for strlen(path) + TEMPORARY_ROOM characters. */
static void temporary_name(const char *path, char *out)
{
    snprintf(out, strlen(path) + TEMPORARY_ROOM, "%s.%llu.tmp", path,
             (unsigned long long)random_number());
}

static int create_temporary(const char *path, char *out)
{
    int fd = -1;
    for (int i = 0; i < TEMPORARY_ATTEMPTS && (i == 0 || errno == EEXIST) && fd < 0; i++) {
        temporary_name(path, out);
        fd = io_open(out, O_WRONLY | O_CREAT | O_EXCL, 0666);
    }
    return fd;
}

bool atomic_open(AtomicFile *file, const char *path, RtError *err)
{
    *file = (AtomicFile){.fd = -1};
    int64_t size = (int64_t)strlen(path) + TEMPORARY_ROOM;
    file->path = rt_alloc(size, 1, err);
    file->temporary = rt_alloc(size, 1, err);
    if (!file->path || !file->temporary) {
        atomic_abort(file);
        return false;
    }
    strcpy(file->path, path);
    file->fd = create_temporary(path, file->temporary);
    if (file->fd < 0) {
        free(file->temporary); /* nothing of ours has that name */
        file->temporary = NULL;
        return write_failed(file, "create a file beside", err);
    }
    file->crc32 = (uint32_t)crc32(0, NULL, 0);
    return true;
}

/* The disk begins with what has been written while the rest is still being copied and summed, so
 * that syncing waits for the last part only.  Advice: what fails here shows in fsync. */
static void start_writing(AtomicFile *file)
{
    if (file->bytes - file->started < WRITE_AHEAD_BYTES)
        return;
    (void)!sync_file_range(file->fd, file->started, file->bytes - file->started,
                           SYNC_FILE_RANGE_WRITE);
    file->started = file->bytes;
}

bool atomic_write(AtomicFile *file, const void *data, int64_t bytes, RtError *err)
{
    if (file->fd < 0)
        return rt_error(err, "the file is not open");
    if (bytes == 0)
        return true;
    const char *p = data;
    for (int64_t left = bytes; left > 0;) {
        int64_t part = left < WRITE_AHEAD_BYTES ? left : WRITE_AHEAD_BYTES;
        if (!io_write(file->fd, p, part))
            return write_failed(file, "write", err);
        file->crc32 = (uint32_t)crc32_z(file->crc32, (const unsigned char *)p, (size_t)part);
        file->bytes += part;
        p += part;
        left -= part;
        start_writing(file);
    }
    return true;
}

bool atomic_commit(AtomicFile *file, RtError *err)
{
    if (file->fd < 0)
        return rt_error(err, "the file is not open");
    if (io_sync(file->fd) != 0)
        return write_failed(file, "sync", err);
    int fd = file->fd;
    file->fd = -1;
    if (close(fd) != 0)
        return write_failed(file, "close", err);
    if (io_fails() || rename(file->temporary, file->path) != 0)
        return write_failed(file, "replace", err);
    free(file->temporary);
    file->temporary = NULL; /* nothing left to remove */
    bool ok = io_sync_folder(file->path, err);
    atomic_abort(file);
    return ok;
}

void atomic_abort(AtomicFile *file)
{
    if (file->fd >= 0)
        close(file->fd);
    if (file->temporary)
        unlink(file->temporary);
    free(file->temporary);
    free(file->path);
    file->temporary = file->path = NULL;
    file->fd = -1;
}

bool file_replace(const char *path, const void *data, int64_t bytes, RtError *err)
{
    AtomicFile file;
    return atomic_open(&file, path, err) && atomic_write(&file, data, bytes, err) &&
           atomic_commit(&file, err);
}

static bool copy_bytes(int fd, AtomicFile *to, RtError *err)
{
    unsigned char buffer[1 << 16];
    int64_t got;
    while ((got = io_read(fd, buffer, sizeof buffer)) > 0)
        if (!atomic_write(to, buffer, got, err))
            return false;
    return got == 0 || rt_error(err, "cannot copy to %s: %s", to->path, strerror(errno));
}

static bool copy_file(const char *from, const char *to, RtError *err)
{
    int64_t bytes;
    AtomicFile file = {.fd = -1};
    int fd = file_open_regular(from, &bytes, err);
    if (fd < 0)
        return false;
    bool ok =
        atomic_open(&file, to, err) && copy_bytes(fd, &file, err) && atomic_commit(&file, err);
    atomic_abort(&file);
    close(fd);
    return ok;
}

/* A link of a new name, into temporary; false where the file system has none. */
static bool link_temporary(const char *from, const char *to, char *temporary)
{
    const char *base = strrchr(from, '/');
    bool linked = false;
    for (int i = 0; i < TEMPORARY_ATTEMPTS && (i == 0 || errno == EEXIST) && !linked; i++) {
        temporary_name(to, temporary);
        linked = (!io_fails() && link(from, temporary) == 0) ||
                 (!io_fails() && symlink(base ? base + 1 : from, temporary) == 0);
    }
    return linked;
}

bool file_second(const char *from, const char *to, RtError *err)
{
    return (!io_fails() && link(from, to) == 0) || copy_file(from, to, err);
}

bool file_link(const char *from, const char *to, RtError *err)
{
    int64_t size = (int64_t)strlen(to) + TEMPORARY_ROOM;
    char *temporary = rt_alloc(size, 1, err);
    if (!temporary)
        return false;
    bool linked = link_temporary(from, to, temporary);
    bool ok = linked && !io_fails() && rename(temporary, to) == 0;
    if (linked && !ok)
        rt_error(err, "cannot link %s to %s: %s", to, from, strerror(errno));
    if (linked)
        unlink(temporary); /* renaming onto another link of the same file leaves it */
    free(temporary);
    return linked ? ok && io_sync_folder(to, err) : copy_file(from, to, err);
}
