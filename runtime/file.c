#include "runtime/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

enum { WRITE_AHEAD_BYTES = 16 << 20 };
static _Atomic uint64_t fail_at;

uint64_t file_fail_at(uint64_t k)
{
    return atomic_exchange(&fail_at, k);
}

/* Counts down; true, with errno of a full disk, at the operation that is to fail. */
static bool injected(void)
{
    if (fail_at == 0 || --fail_at != 0)
        return false;
    errno = ENOSPC;
    return true;
}

static int open_fd(const char *path, int flags, mode_t mode)
{
    return injected() ? -1 : open(path, flags | O_CLOEXEC, mode);
}

static int sync_fd(int fd)
{
    return injected() ? -1 : fsync(fd);
}

static bool write_all(int fd, const char *p, int64_t n)
{
    bool fails = injected();
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
    int fd = open_fd(path, O_RDONLY | O_NONBLOCK, 0);
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
static int64_t read_all(int fd, unsigned char *p, int64_t n)
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
    room->bytes = read_all(fd, room->data, bytes);
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
    while ((got = read_all(fd, buffer, sizeof buffer)) > 0) {
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

/* A new name is durable once its folder is synced.  Some file systems cannot sync folders, and one
 * that may be written but not read cannot be opened. */
static bool sync_folder(const char *path, RtError *err)
{
    char *copy = rt_alloc((int64_t)strlen(path) + 1, 1, err);
    if (!copy)
        return false;
    strcpy(copy, path);
    int fd = open_fd(dirname(copy), O_RDONLY | O_DIRECTORY, 0);
    free(copy);
    bool ok = fd >= 0 ? sync_fd(fd) == 0 || errno == EINVAL || errno == ENOTSUP : errno == EACCES;
    if (!ok)
        rt_error(err, "%s is written, but its folder cannot be synced: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return ok;
}

/* ---- atomic replacement ---- */

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
        fd = open_fd(out, O_WRONLY | O_CREAT | O_EXCL, 0666);
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
        if (!write_all(file->fd, p, part))
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
    if (sync_fd(file->fd) != 0)
        return write_failed(file, "sync", err);
    int fd = file->fd;
    file->fd = -1;
    if (close(fd) != 0)
        return write_failed(file, "close", err);
    if (injected() || rename(file->temporary, file->path) != 0)
        return write_failed(file, "replace", err);
    free(file->temporary);
    file->temporary = NULL; /* nothing left to remove */
    bool ok = sync_folder(file->path, err);
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
    while ((got = read_all(fd, buffer, sizeof buffer)) > 0)
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
        linked = (!injected() && link(from, temporary) == 0) ||
                 (!injected() && symlink(base ? base + 1 : from, temporary) == 0);
    }
    return linked;
}

bool file_link(const char *from, const char *to, RtError *err)
{
    int64_t size = (int64_t)strlen(to) + TEMPORARY_ROOM;
    char *temporary = rt_alloc(size, 1, err);
    if (!temporary)
        return false;
    bool linked = link_temporary(from, to, temporary);
    bool ok = linked && !injected() && rename(temporary, to) == 0;
    if (linked && !ok)
        rt_error(err, "cannot link %s to %s: %s", to, from, strerror(errno));
    if (linked)
        unlink(temporary); /* renaming onto another link of the same file leaves it */
    free(temporary);
    return linked ? ok && sync_folder(to, err) : copy_file(from, to, err);
}

/* The next entry, or NULL with errno 0 at the end. */
static const struct dirent *next_entry(DIR *d)
{
    errno = 0;
    return injected() ? NULL : readdir(d);
}

bool folder_each(const char *dir, FolderEntry *visit, void *user, RtError *err)
{
    DIR *d = injected() ? NULL : opendir(dir);
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
        synced = mkdir(copy, 0777) != 0 || sync_folder(copy, err);
        *p = '/';
    }
    free(copy);
    if (!synced)
        return false;
    if (mkdir(path, 0777) == 0)
        return sync_folder(path, err);
    int why = errno;
    return folder_exists(path) || rt_error(err, "cannot make the folder %s: %s", path,
                                           why == EEXIST ? "a file has that name" : strerror(why));
}
