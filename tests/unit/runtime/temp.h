/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A temporary folder of one test, and files in it. */
#ifndef SCRIMP_TESTS_TEMP_H
#define SCRIMP_TESTS_TEMP_H

#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static char temp_dir[256];

static inline int temp_remove_entry(const char *path, const struct stat *st, int type,
                                    struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static inline void temp_close(void)
{
    if (temp_dir[0])
        nftw(temp_dir, temp_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* The folder goes away when the process ends. */
static inline void temp_open(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(temp_dir, sizeof temp_dir, "%s/scrimp-test-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(temp_dir)) {
        perror("mkdtemp");
        exit(1);
    }
    atexit(temp_close);
}

/* Path of a name in the folder; one of eight buffers in turn. */
static inline const char *temp_path(const char *name)
{
    static char paths[8][1024];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", temp_dir, name);
    return path;
}

static inline void temp_write(const char *name, const void *data, size_t bytes)
{
    FILE *f = fopen(temp_path(name), "wb");
    if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f) != 0) {
        perror(name);
        exit(1);
    }
}

static inline void temp_write_gz(const char *name, const void *data, unsigned bytes)
{
    gzFile gz = gzopen(temp_path(name), "wb");
    if (!gz || gzwrite(gz, data, bytes) != (int)bytes || gzclose(gz) != Z_OK) {
        perror(name);
        exit(1);
    }
}

#endif
