/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Zip archives for tests, written byte by byte, right or wrong. */
#ifndef SCRIMP_TESTS_ZIP_CASE_H
#define SCRIMP_TESTS_ZIP_CASE_H

#include <stdbool.h>
#include <stdint.h>

enum { ZIP_CASE_ENTRIES = 16 };
typedef struct ZipCase {
    unsigned char *bytes;
    int64_t n;
    struct {
        char name[64];
        int64_t at, packed, size;
        uint32_t crc;
        int method, flags;
    } entry[ZIP_CASE_ENTRIES]; /* what the directory will say; may be changed before zip_end */
    int n_entries;
} ZipCase;

/* Packed by deflate, or stored. */
void zip_add(ZipCase *z, const char *name, const void *data, int64_t n, bool packed);
/* A .npy of this header (descr and shape). */
void zip_add_npy(ZipCase *z, const char *name, const char *descr, const char *shape,
                 const void *data, int64_t n, bool packed);
/* The directory; sizes that are too large for 32 bits are written in 64. */
void zip_end(ZipCase *z);
void zip_free(ZipCase *z);

#endif
