/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/build/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ATTEMPTS = 100, CHUNK = 1 << 30 };

bool fd_write(int fd, const void *bytes, size_t n)
{
    const char *p = bytes;
    while (n > 0) {
        ssize_t done = write(fd, p, n < CHUNK ? n : CHUNK);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return false;
        p += done;
        n -= (size_t)done;
    }
    return true;
}

static bool read_all(int fd, char *p, size_t n)
{
    while (n > 0) {
        ssize_t done = read(fd, p, n < CHUNK ? n : CHUNK);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            errno = done < 0 ? errno : EIO; /* it became shorter meanwhile */
            return false;
        }
        p += done;
        n -= (size_t)done;
    }
    return true;
}

char *fd_read(Pool *pool, int fd, size_t limit, size_t *n)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return NULL;
    if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > limit) {
        errno = S_ISREG(st.st_mode) ? EFBIG : EINVAL;
        return NULL;
    }
    *n = (size_t)st.st_size;
    char *bytes = pool_alloc(pool, *n + 1);
    bytes[*n] = '\0';
    return read_all(fd, bytes, *n) ? bytes : NULL;
}

char *fd_read_path(Pool *pool, const char *path, size_t limit, size_t *n)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    char *bytes = fd_read(pool, fd, limit, n);
    int why = errno;
    close(fd);
    errno = why;
    return bytes;
}

bool fd_create(const char *path, const void *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool ok = fd_write(fd, bytes, n);
    int why = errno;
    ok = close(fd) == 0 && ok;
    errno = ok ? errno : why;
    return ok;
}

/* Process numbers repeat in containers that share a folder. */
static uint64_t random_number(void)
{
    uint64_t x;
    struct timespec t;
    if (getrandom(&x, sizeof x, GRND_NONBLOCK) == (ssize_t)sizeof x)
        return x;
    clock_gettime(CLOCK_REALTIME, &t); /* early at boot; a name that is taken is tried again */
    return (uint64_t)t.tv_nsec << 32 ^ (uint64_t)getpid() << 16 ^ (uint64_t)t.tv_sec;
}

static int create_temporary(Pool *pool, const char *path, mode_t mode, const char **name)
{
    int fd = -1;
    for (int i = 0; i < ATTEMPTS && (i == 0 || errno == EEXIST) && fd < 0; i++) {
        *name = pool_printf(pool, "%s.%llu.tmp", path, (unsigned long long)random_number());
        fd = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    }
    return fd;
}

bool fd_replace(Pool *pool, const char *path, const void *bytes, size_t n, mode_t mode, bool sync)
{
    const char *name;
    int fd = create_temporary(pool, path, mode, &name);
    if (fd < 0)
        return false;
    bool ok = fd_write(fd, bytes, n) && (!sync || fsync(fd) == 0);
    int why = errno;
    if (close(fd) != 0 && ok) {
        ok = false;
        why = errno;
    }
    if (ok && rename(name, path) == 0)
        return true;
    why = ok ? errno : why;
    unlink(name);
    errno = why;
    return false;
}
