/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Source: PKWARE's APPNOTE.TXT, 4.3 and 4.5.3. */
#include "tests/support/data/zip_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static void put(ZipCase *z, const void *data, int64_t n)
{
    z->bytes = realloc(z->bytes, (size_t)(z->n + n) + 1);
    if (!z->bytes)
        abort();
    if (n)
        memcpy(z->bytes + z->n, data, (size_t)n);
    z->n += n;
}

/* A little-endian number of `bytes` bytes. */
static void number(ZipCase *z, int64_t v, int bytes)
{
    put(z, &v, bytes);
}

static int64_t deflate_all(const void *data, int64_t n, unsigned char **out)
{
    z_stream s = {.next_in = (unsigned char *)(uintptr_t)data, .avail_in = (unsigned)n};
    if (deflateInit2(&s, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
    unsigned long room = deflateBound(&s, (unsigned long)n);
    s.next_out = *out = malloc(room);
    s.avail_out = (unsigned)room;
    if (deflate(&s, Z_FINISH) != Z_STREAM_END)
        abort();
    deflateEnd(&s);
    return (int64_t)s.total_out;
}

/* What a header and the directory have in common. */
static void facts(ZipCase *z, int i)
{
    bool wide = z->entry[i].size > UINT32_MAX - 1;
    number(z, z->entry[i].flags, 2);
    number(z, z->entry[i].method, 2);
    number(z, 0x00210000, 4); /* 1980-01-01 */
    number(z, z->entry[i].crc, 4);
    number(z, z->entry[i].packed, 4);
    number(z, wide ? UINT32_MAX : z->entry[i].size, 4);
    number(z, (int64_t)strlen(z->entry[i].name), 2);
    number(z, wide ? 12 : 0, 2);
}

static void name_and_size(ZipCase *z, int i)
{
    put(z, z->entry[i].name, (int64_t)strlen(z->entry[i].name));
    if (z->entry[i].size > UINT32_MAX - 1) {
        number(z, 1, 2);
        number(z, 8, 2);
        number(z, z->entry[i].size, 8);
    }
}

void zip_add(ZipCase *z, const char *name, const void *data, int64_t n, bool packed)
{
    unsigned char *deflated = NULL;
    int i = z->n_entries++;
    snprintf(z->entry[i].name, sizeof z->entry[i].name, "%s", name);
    z->entry[i].at = z->n;
    z->entry[i].size = n;
    z->entry[i].method = packed ? 8 : 0;
    z->entry[i].crc = (uint32_t)crc32(0, data, (unsigned)n);
    z->entry[i].packed = packed ? deflate_all(data, n, &deflated) : n;
    put(z, "PK\3\4\24", 6);
    facts(z, i);
    name_and_size(z, i);
    put(z, packed ? deflated : data, z->entry[i].packed);
    free(deflated);
}

void zip_add_npy(ZipCase *z, const char *name, const char *descr, const char *shape,
                 const void *data, int64_t n, bool packed)
{
    char head[256], file[128];
    int len = snprintf(head + 10, sizeof head - 10,
                       "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", descr, shape);
    memcpy(head, "\x93NUMPY\1", 8);
    head[8] = (char)len;
    head[9] = 0;
    unsigned char *all = malloc((size_t)(10 + len + n));
    if (!all)
        abort();
    memcpy(all, head, (size_t)(10 + len));
    memcpy(all + 10 + len, data, (size_t)n);
    snprintf(file, sizeof file, "%s.npy", name);
    zip_add(z, file, all, 10 + len + n, packed);
    free(all);
}

void zip_end(ZipCase *z)
{
    int64_t start = z->n;
    for (int i = 0; i < z->n_entries; i++) {
        put(z, "PK\1\2\24\0\24", 8);
        facts(z, i);
        number(z, 0, 8); /* comment, disk, attributes */
        number(z, 0, 2);
        number(z, z->entry[i].at, 4);
        name_and_size(z, i);
    }
    int64_t directory = z->n - start;
    put(z, "PK\5\6\0\0\0", 8);
    number(z, z->n_entries, 2);
    number(z, z->n_entries, 2);
    number(z, directory, 4);
    number(z, start, 4);
    number(z, 0, 2);
}

void zip_free(ZipCase *z)
{
    free(z->bytes);
    *z = (ZipCase){0};
}
