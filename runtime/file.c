/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/file_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static _Atomic uint64_t fail_at;

uint64_t file_fail_at(uint64_t k)
{
    return atomic_exchange(&fail_at, k);
}

/* Counts down; true, with errno of a full disk, at the operation that is to fail. */
bool io_fails(void)
{
    if (fail_at == 0 || --fail_at != 0)
        return false;
    errno = ENOSPC;
    return true;
}

int io_open(const char *path, int flags, mode_t mode)
{
    return io_fails() ? -1 : open(path, flags | O_CLOEXEC, mode);
}

int io_sync(int fd)
{
    return io_fails() ? -1 : fsync(fd);
}

bool io_write(int fd, const char *p, int64_t n)
{
    bool fails = io_fails();
    int64_t left = fails ? n / 2 : n;
    while (left > 0) {
        /* Linux transfers less than 2 GiB at once. */
        ssize_t done = write(fd, p, left < (1 << 30) ? (size_t)left : (size_t)1 << 30);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return false;
        p += done;
        left -= done;
    }
    if (fails)
        errno = ENOSPC;
    return !fails;
}

bool file_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool folder_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int file_open_regular(const char *path, int64_t *bytes, RtError *err)
{
    /* Not blocking: opening a pipe somebody named as data must not hang. */
    int fd = io_open(path, O_RDONLY | O_NONBLOCK, 0);
    struct stat st;
    if (fd < 0) {
        rt_error(err, "cannot open %s: %s", path, strerror(errno));
        return -1;
    }
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        rt_error(err, "%s is not a regular file", path);
        close(fd);
        return -1;
    }
    *bytes = st.st_size;
    return fd;
}

/* Up to n bytes; fewer at the end of the file.  -1 on an error. */
int64_t io_read(int fd, unsigned char *p, int64_t n)
{
    int64_t at = 0;
    while (at < n) {
        int64_t left = n - at;
        ssize_t done = read(fd, p + at, left < (1 << 30) ? (size_t)left : (size_t)1 << 30);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -1;
        if (done == 0)
            break;
        at += done;
    }
    return at;
}

bool file_room_reserve(FileRoom *room, int64_t bytes, RtError *err)
{
    if (bytes <= room->room && room->data)
        return true;
    free(room->data);
    room->data = rt_alloc(bytes, 1, err);
    room->room = room->data ? bytes : 0;
    return room->data != NULL;
}

static bool read_opened(int fd, const char *path, int64_t bytes, int64_t limit, FileRoom *room,
                        RtError *err)
{
    if (bytes > limit)
        return rt_error(err, "%s has %lld bytes; at most %lld are read", path, (long long)bytes,
                        (long long)limit);
    if (!file_room_reserve(room, bytes + 1, err))
        return false;
    room->bytes = io_read(fd, room->data, bytes);
    return room->bytes == bytes ||
           rt_error(err, "cannot read %s: %s", path,
                    room->bytes < 0 ? strerror(errno) : "it became shorter meanwhile");
}

bool file_read_into(const char *path, int64_t limit, FileRoom *room, RtError *err)
{
    int64_t bytes;
    int fd = file_open_regular(path, &bytes, err);
    bool ok = fd >= 0 && read_opened(fd, path, bytes, limit, room, err);
    if (fd >= 0)
        close(fd);
    return ok;
}

bool file_read(const char *path, int64_t limit, FileBytes *out, RtError *err)
{
    FileRoom room = {0};
    *out = (FileBytes){0};
    if (!file_read_into(path, limit, &room, err)) {
        free(room.data);
        return false;
    }
    room.data[room.bytes] = 0;
    *out = (FileBytes){room.data, room.bytes, false};
    return true;
}

/* Size and CRC-32 of what is left to read. */
static bool sum_fd(int fd, const char *path, int64_t *bytes, uint32_t *crc, RtError *err)
{
    unsigned char buffer[1 << 16];
    int64_t got;
    *bytes = 0;
    *crc = (uint32_t)crc32(0, NULL, 0);
    while ((got = io_read(fd, buffer, sizeof buffer)) > 0) {
        *crc = (uint32_t)crc32_z(*crc, buffer, (size_t)got);
        *bytes += got;
    }
    return got == 0 || rt_error(err, "cannot read %s: %s", path, strerror(errno));
}

bool file_checksum(const char *path, int64_t *bytes, uint32_t *crc, RtError *err)
{
    int64_t size;
    int fd = file_open_regular(path, &size, err);
    if (fd < 0)
        return false;
    bool ok = sum_fd(fd, path, bytes, crc, err);
    close(fd);
    return ok;
}

static bool map_fd(int fd, const char *path, FileBytes *out, RtError *err)
{
    out->data = (const unsigned char *)"";
    if (out->bytes == 0)
        return true;
    void *p = mmap(NULL, (size_t)out->bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) {
        out->bytes = 0;
        return rt_error(err, "cannot map %s: %s", path, strerror(errno));
    }
    out->data = p;
    return true;
}

bool file_map(const char *path, FileBytes *out, RtError *err)
{
    *out = (FileBytes){.mapped = true};
    int fd = file_open_regular(path, &out->bytes, err);
    if (fd < 0)
        return false;
    bool ok = map_fd(fd, path, out, err);
    close(fd);
    return ok;
}

bool file_map_exact(const char *path, int64_t bytes, uint32_t crc, FileBytes *out, RtError *err)
{
    *out = (FileBytes){.mapped = true};
    int64_t have;
    uint32_t sum;
    int fd = file_open_regular(path, &out->bytes, err);
    if (fd < 0)
        return false;
    bool ok = sum_fd(fd, path, &have, &sum, err);
    if (ok && (have != bytes || out->bytes != bytes || sum != crc))
        ok = rt_error(err, "%s is not the file that was saved: its size or checksum differs", path);
    ok = ok && map_fd(fd, path, out, err);
    close(fd);
    return ok;
}

void file_release(FileBytes *file)
{
    void *p = (void *)(uintptr_t)file->data;
    if (file->mapped && file->bytes)
        munmap(p, (size_t)file->bytes);
    else if (!file->mapped)
        free(p);
    *file = (FileBytes){0};
}

char *path_join(const char *dir, const char *name, RtError *err)
{
    int64_t size = (int64_t)(strlen(dir) + strlen(name) + 2);
    char *path = rt_alloc(size, 1, err);
    if (path)
        snprintf(path, (size_t)size, "%s/%s", dir, name);
    return path;
}

/* The next entry, or NULL with errno 0 at the end. */
static const struct dirent *next_entry(DIR *d)
{
    errno = 0;
    return io_fails() ? NULL : readdir(d);
}

bool folder_each(const char *dir, FolderEntry *visit, void *user, RtError *err)
{
    DIR *d = io_fails() ? NULL : opendir(dir);
    if (!d)
        return rt_error(err, "cannot read the folder %s: %s", dir, strerror(errno));
    bool ok = true;
    const struct dirent *e;
    while (ok && (e = next_entry(d)))
        ok = e->d_name[0] == '.' || visit(user, dir, e->d_name, err);
    if (ok && errno) /* the rest of the names would be missing */
        ok = rt_error(err, "cannot read the folder %s: %s", dir, strerror(errno));
    closedir(d);
    return ok;
}

enum { MAX_FOLDER_DEPTH = 64 };

typedef struct Walk {
    int depth;
    FolderVisit *visit;
    void *user;
} Walk;

static bool walk(const char *dir, Walk *w, RtError *err);

static bool walk_entry(void *user, const char *dir, const char *name, RtError *err)
{
    const Walk *w = user;
    struct stat st;
    char *path = path_join(dir, name, err);
    bool ok = path != NULL;
    if (ok && lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
        ok = walk(path, &(Walk){w->depth + 1, w->visit, w->user}, err);
    else if (ok && file_exists(path))
        ok = w->visit(w->user, path, name, err);
    free(path);
    return ok;
}

static bool walk(const char *dir, Walk *w, RtError *err)
{
    if (w->depth > MAX_FOLDER_DEPTH)
        return rt_error(err, "%s: folders are nested deeper than %d", dir, MAX_FOLDER_DEPTH);
    return folder_each(dir, walk_entry, w, err);
}

bool folder_walk(const char *dir, FolderVisit *visit, void *user, RtError *err)
{
    return walk(dir, &(Walk){0, visit, user}, err);
}

bool folder_make(const char *path, RtError *err)
{
    char *copy = rt_alloc((int64_t)strlen(path) + 1, 1, err);
    if (!copy)
        return false;
    strcpy(copy, path);
    bool synced = true;
    for (char *p = copy + 1; synced && *p; p++) {
        if (*p != '/')
            continue;
        *p = 0; /* a parent that cannot be made shows in the last mkdir */
        synced = mkdir(copy, 0777) != 0 || io_sync_folder(copy, err);
        *p = '/';
    }
    free(copy);
    if (!synced)
        return false;
    if (mkdir(path, 0777) == 0)
        return io_sync_folder(path, err);
    int why = errno;
    return folder_exists(path) || rt_error(err, "cannot make the folder %s: %s", path,
                                           why == EEXIST ? "a file has that name" : strerror(why));
}
