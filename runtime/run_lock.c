/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/run_lock.h"

#include "runtime/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* What is tried again for half a second: a lock of a process that is just ending, as compilers do
 * that outlive a killed parent by a moment, and a holder that has not written its name yet. */
enum { ATTEMPTS = 25, PAUSE_NANOSECONDS = 20 * 1000 * 1000, HOLDER_BYTES = 200 };

typedef enum Attempt { LOCK_TAKEN, LOCK_HELD, LOCK_MOVED, LOCK_UNSUPPORTED, LOCK_FAILED } Attempt;

static int open_lock(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0 && errno == EACCES) /* left by another user: locked, it may be replaced */
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd;
}

/* The holder removes its file before it lets go: the one that was opened may have no name. */
static bool still_there(int fd, const char *path)
{
    struct stat mine, there;
    return fstat(fd, &mine) == 0 && stat(path, &there) == 0 && mine.st_ino == there.st_ino &&
           mine.st_dev == there.st_dev;
}

static bool no_locks_here(int why)
{
    return why == ENOTSUP || why == ENOSYS || why == ENOLCK || why == EINVAL || why == EBADF;
}

static Attempt try_lock(int fd, const char *path)
{
    int status;
    do
        status = flock(fd, LOCK_EX | LOCK_NB);
    while (status != 0 && errno == EINTR);
    if (status != 0)
        return errno == EWOULDBLOCK   ? LOCK_HELD
               : no_locks_here(errno) ? LOCK_UNSUPPORTED
                                      : LOCK_FAILED;
    if (!still_there(fd, path))
        return LOCK_MOVED;
    if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR)
        return LOCK_TAKEN;
    return unlink(path) == 0 ? LOCK_MOVED : LOCK_FAILED;
}

/* "process 12 on host since 2026-01-31 23:59:59 UTC".  A full disk is no reason not to hold it. */
static void write_holder(int fd)
{
    char host[65] = "", when[32] = "", text[HOLDER_BYTES];
    time_t now = time(NULL);
    struct tm utc;
    gethostname(host, sizeof host - 1);
    if (gmtime_r(&now, &utc))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC", &utc);
    int n = snprintf(text, sizeof text, "process %ld on %s since %s\n", (long)getpid(), host, when);
    if (ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)n, 0) != n)
        (void)!ftruncate(fd, 0);
}

/* The file's first line as far as it can be printed; "" when there is none. */
static void read_holder(int fd, char text[HOLDER_BYTES])
{
    ssize_t n = pread(fd, text, HOLDER_BYTES - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    char *p = text;
    while (*p >= ' ' && *p <= '~')
        p++;
    *p = '\0';
}

/* One attempt; a lock that was not taken is closed. */
static Attempt attempt(const char *path, int *fd, char holder[HOLDER_BYTES])
{
    *fd = open_lock(path);
    if (*fd < 0)
        return LOCK_FAILED;
    Attempt result = try_lock(*fd, path);
    if (result == LOCK_TAKEN)
        return result;
    int why = errno;
    if (result == LOCK_HELD)
        read_holder(*fd, holder);
    if (result == LOCK_UNSUPPORTED)
        unlink(path);
    close(*fd);
    *fd = -1;
    errno = why;
    return result;
}

static bool refuse(Attempt result, const char *dir, const char *path, const char *holder,
                   RtError *err)
{
    if (result == LOCK_FAILED)
        return rt_error(err, "cannot lock %s: %s", path, strerror(errno));
    return rt_error(err, "%s is being written by %s", dir, *holder ? holder : "another process");
}

bool run_lock(RunLock *lock, const char *dir, RtError *note, RtError *err)
{
    char holder[HOLDER_BYTES] = "";
    *lock = (RunLock){.fd = -1, .path = path_join(dir, "trainer.lock", err)};
    note->message[0] = '\0';
    if (!lock->path)
        return false;
    Attempt result = LOCK_HELD;
    for (int i = 0; i < ATTEMPTS && (result == LOCK_HELD || result == LOCK_MOVED); i++) {
        if (i)
            nanosleep(&(struct timespec){0, PAUSE_NANOSECONDS}, NULL);
        result = attempt(lock->path, &lock->fd, holder);
    }
    if (result == LOCK_TAKEN) {
        write_holder(lock->fd);
        return true;
    }
    if (result == LOCK_UNSUPPORTED)
        rt_error(note, "the file system of %s has no locks (%s): nothing keeps a second run out",
                 dir, strerror(errno));
    else
        refuse(result, dir, lock->path, holder, err);
    run_unlock(lock);
    return result == LOCK_UNSUPPORTED;
}

void run_unlock(RunLock *lock)
{
    if (lock->path && lock->fd >= 0) {
        if (still_there(lock->fd, lock->path))
            unlink(lock->path);
        close(lock->fd);
    }
    free(lock->path);
    *lock = (RunLock){.fd = -1};
}
