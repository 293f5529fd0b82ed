/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Loaded before the C library (LD_PRELOAD): a disk that takes a tenth of a second to sync anything.
 * Names that files are renamed to are appended to $RENAMED. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int fsync(int fd)
{
    nanosleep(&(struct timespec){0, 100 * 1000 * 1000}, NULL);
    return (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to)
{
    const char *path = getenv("RENAMED");
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    if (fd >= 0) {
        dprintf(fd, "%s\n", to);
        close(fd);
    }
    return (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
}
