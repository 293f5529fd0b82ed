/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/data/temp.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

char temp_dir[256];

static int temp_remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static void temp_close(void)
{
    if (temp_dir[0])
        nftw(temp_dir, temp_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

void temp_open(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(temp_dir, sizeof temp_dir, "%s/scrimp-test-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(temp_dir)) {
        perror("mkdtemp");
        exit(1);
    }
    atexit(temp_close);
}

const char *temp_path(const char *name)
{
    static char paths[8][1024];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", temp_dir, name);
    return path;
}

void temp_write(const char *name, const void *data, size_t bytes)
{
    FILE *f = fopen(temp_path(name), "wb");
    if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f) != 0) {
        perror(name);
        exit(1);
    }
}

void temp_write_gz(const char *name, const void *data, unsigned bytes)
{
    gzFile gz = gzopen(temp_path(name), "wb");
    if (!gz || gzwrite(gz, data, bytes) != (int)bytes || gzclose(gz) != Z_OK) {
        perror(name);
        exit(1);
    }
}
