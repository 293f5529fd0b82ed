/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Whole files, read and written. */
#ifndef SCRIMP_CODEGEN_BUILD_FD_H
#define SCRIMP_CODEGEN_BUILD_FD_H

#include "ir/support/pool.h"

#include <sys/types.h>

/* False with errno. */
bool fd_write(int fd, const void *bytes, size_t n);
/* The whole file, which is followed by a NUL on the pool; NULL with errno (EFBIG above limit). */
char *fd_read(Pool *pool, int fd, size_t limit, size_t *n);
/* The same of a path. */
char *fd_read_path(Pool *pool, const char *path, size_t limit, size_t *n);
/* A new file of mode 0600; false with errno. */
bool fd_create(const char *path, const void *bytes, size_t n);
/* The bytes under a temporary name beside path, which then becomes path; sync: on the disk first.
 * False with errno; path is as it was. */
bool fd_replace(Pool *pool, const char *path, const void *bytes, size_t n, mode_t mode, bool sync);

#endif
