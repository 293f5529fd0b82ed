/* SPDX-License-Identifier: GPL-3.0-or-later */
/* System calls on files, which tests make fail (file_fail_at). */
#ifndef SCRIMP_RUNTIME_FILE_INTERNAL_H
#define SCRIMP_RUNTIME_FILE_INTERNAL_H

#include "runtime/file.h"

#include <sys/types.h>

/* Counts down; true, with errno of a full disk, at the operation that is to fail. */
bool io_fails(void);
int io_open(const char *path, int flags, mode_t mode);
int io_sync(int fd);
bool io_write(int fd, const char *p, int64_t n);
/* Up to n bytes; fewer at the end of the file.  -1 on an error. */
int64_t io_read(int fd, unsigned char *p, int64_t n);
/* The folder of a path, so that a new name in it is durable. */
bool io_sync_folder(const char *path, RtError *err);

#endif
