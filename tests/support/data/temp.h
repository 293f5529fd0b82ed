/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A temporary folder of one test, and files in it. */
#ifndef SCRIMP_TESTS_TEMP_H
#define SCRIMP_TESTS_TEMP_H

#include <stddef.h>

extern char temp_dir[256];

/* The folder goes away when the process ends. */
void temp_open(void);
/* Path of a name in the folder; one of eight buffers in turn. */
const char *temp_path(const char *name);
/* A file of that name in the folder; the process ends where it cannot be written. */
void temp_write(const char *name, const void *data, size_t bytes);
void temp_write_gz(const char *name, const void *data, unsigned bytes);

#endif
