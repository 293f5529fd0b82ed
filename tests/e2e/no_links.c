/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Loaded before the C library (LD_PRELOAD): a file system without hard or symbolic links. */
#include <errno.h>
#include <unistd.h>

static int refuse(void)
{
    errno = EPERM;
    return -1;
}

int link(const char *from, const char *to)
{
    (void)from;
    (void)to;
    return refuse();
}

int symlink(const char *from, const char *to)
{
    (void)from;
    (void)to;
    return refuse();
}
