/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/npz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

/* deflate makes 1,032 bytes of one at best. */
enum { DEFLATE_MOST = 1032, MAX_NAME = 200 };
static const int64_t MAX_UNPACKED = (int64_t)4 << 30;

/* An unpacked array. */
typedef struct Block {
    struct Block *next;
    unsigned char data[];
} Block;

struct Npz {
    const unsigned char *bytes;
    int64_t n, at;
    int64_t read_from, read_bytes; /* of the last read */
    zip_t *zip;
    zip_error_t error;
    Block *block;
    int64_t unpacked;
    char name[MAX_NAME];
};

/* ---- the bytes as libzip reads them ---- */

static zip_int64_t read_bytes(Npz *z, void *to, zip_uint64_t want)
{
    zip_uint64_t left = (zip_uint64_t)(z->n - z->at), n = want < left ? want : left;
    if (n)
        memcpy(to, z->bytes + z->at, n);
    z->read_from = z->at;
    z->read_bytes = (int64_t)n;
    z->at += (int64_t)n;
    return (zip_int64_t)n;
}

static zip_int64_t stat_bytes(const Npz *z, zip_stat_t *st)
{
    zip_stat_init(st);
    st->valid = ZIP_STAT_SIZE;
    st->size = (zip_uint64_t)z->n;
    return sizeof *st;
}

static zip_int64_t source(void *user, void *data, zip_uint64_t n, zip_source_cmd_t command)
{
    Npz *z = user;
    zip_int64_t at;
    if (command == ZIP_SOURCE_READ)
        return read_bytes(z, data, n);
    if (command == ZIP_SOURCE_SEEK) {
        at = zip_source_seek_compute_offset((zip_uint64_t)z->at, (zip_uint64_t)z->n, data, n,
                                            &z->error);
        z->at = at < 0 ? z->at : at;
        return at < 0 ? -1 : 0;
    }
    if (command == ZIP_SOURCE_TELL)
        return z->at;
    if (command == ZIP_SOURCE_STAT)
        return stat_bytes(z, data);
    if (command == ZIP_SOURCE_ERROR)
        return zip_error_to_data(&z->error, data, n);
    if (command == ZIP_SOURCE_SUPPORTS)
        return zip_source_make_command_bitmap(
            ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR,
            ZIP_SOURCE_FREE, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL, ZIP_SOURCE_SUPPORTS, -1);
    if (command == ZIP_SOURCE_OPEN)
        z->at = 0;
    return 0;
}

/* ---- opening ---- */

static bool open_zip(Npz *z, RtError *err)
{
    zip_error_t why;
    zip_error_init(&why);
    zip_source_t *from = zip_source_function_create(source, z, &why);
    z->zip = from ? zip_open_from_source(from, ZIP_RDONLY, &why) : NULL;
    if (!z->zip) {
        rt_error(err, "not a .npz file: %s", zip_error_strerror(&why));
        if (from)
            zip_source_free(from);
    }
    zip_error_fini(&why);
    return z->zip != NULL;
}

int64_t npz_count(const Npz *z)
{
    return zip_get_num_entries(z->zip, 0);
}

Npz *npz_parse(const unsigned char *bytes, int64_t n, RtError *err)
{
    Npz *z = rt_alloc(1, sizeof *z, err);
    if (!z)
        return NULL;
    z->bytes = bytes;
    z->n = n;
    zip_error_init(&z->error);
    if (open_zip(z, err) &&
        (npz_count(z) > 0 || rt_error(err, "not a .npz file: no array is in it")))
        return z;
    npz_close(z);
    return NULL;
}

void npz_close(Npz *z)
{
    if (!z)
        return;
    if (z->zip)
        zip_discard(z->zip);
    while (z->block) {
        Block *next = z->block->next;
        free(z->block);
        z->block = next;
    }
    zip_error_fini(&z->error);
    free(z);
}

const char *npz_name(Npz *z, int64_t i)
{
    const char *name = zip_get_name(z->zip, (zip_uint64_t)i, ZIP_FL_ENC_RAW);
    size_t n = name ? strlen(name) : 0;
    if (n < 5 || n >= MAX_NAME || strcmp(name + n - 4, ".npy") != 0)
        return NULL;
    memcpy(z->name, name, n - 4);
    z->name[n - 4] = 0;
    return z->name;
}

int64_t npz_unpacked(const Npz *z)
{
    return z->unpacked;
}

/* ---- arrays ---- */

/* That what the archive says of an entry can be, before memory is allocated for it. */
static bool check_entry(const Npz *z, const zip_stat_t *st, RtError *err)
{
    const zip_uint64_t wanted = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
    if ((st->valid & wanted) != wanted || st->comp_size > (zip_uint64_t)z->n)
        return rt_error(err, "the archive is damaged: more bytes than the file has");
    if ((st->valid & ZIP_STAT_ENCRYPTION_METHOD) && st->encryption_method != ZIP_EM_NONE)
        return rt_error(err, "it is encrypted");
    if (st->comp_method == ZIP_CM_STORE)
        return st->size == st->comp_size || rt_error(err, "the archive is damaged: two sizes");
    if (st->comp_method != ZIP_CM_DEFLATE)
        return rt_error(err,
                        "packed by method %d of zip; numpy.savez and savez_compressed write what "
                        "is read",
                        st->comp_method);
    if (st->size / DEFLATE_MOST > st->comp_size)
        return rt_error(err, "%llu bytes are promised, too many for %llu packed ones",
                        (unsigned long long)st->size, (unsigned long long)st->comp_size);
    return st->size <= (zip_uint64_t)MAX_UNPACKED ||
           rt_error(err,
                    "%llu bytes; at most %lld are unpacked: numpy.savez in place of "
                    "savez_compressed stores arrays of any size",
                    (unsigned long long)st->size, (long long)MAX_UNPACKED);
}

/* Where the first bytes of a stored entry lie, by what libzip reads for them; NULL when that is not
 * to be seen. */
static const unsigned char *place_of(const Npz *z, const unsigned char *head, int64_t got,
                                     int64_t bytes)
{
    bool seen = got > 0 && z->read_bytes == got && bytes <= z->n - z->read_from &&
                memcmp(z->bytes + z->read_from, head, (size_t)got) == 0;
    return seen ? z->bytes + z->read_from : NULL;
}

/* Bytes of an open entry, all of them, `head` being the first. */
static const unsigned char *unpack(Npz *z, zip_file_t *file, const unsigned char *head, int64_t got,
                                   int64_t bytes, RtError *err)
{
    char beyond;
    zip_int64_t n = 1;
    Block *block = rt_alloc((int64_t)sizeof *block + bytes + 1, 1, err);
    if (!block)
        return NULL;
    block->next = z->block;
    z->block = block;
    memcpy(block->data, head, (size_t)got);
    while (got < bytes && n > 0) {
        n = zip_fread(file, block->data + got, (zip_uint64_t)(bytes - got));
        got += n > 0 ? n : 0;
    }
    if (n > 0)
        n = zip_fread(file, &beyond, 1); /* also compares the checksum */
    z->unpacked += bytes;
    if (n == 0 && got == bytes)
        return block->data;
    rt_error(err, "the archive is damaged: %s",
             n < 0 ? zip_file_strerror(file) : "an array ends too early or too late");
    return NULL;
}

static const unsigned char *entry_bytes(Npz *z, zip_file_t *file, const zip_stat_t *st,
                                        RtError *err)
{
    unsigned char head[16];
    int64_t bytes = (int64_t)st->size,
            want = bytes < (int64_t)sizeof head ? bytes : (int64_t)sizeof head;
    zip_int64_t got = zip_fread(file, head, (zip_uint64_t)want);
    if (got < 0) {
        rt_error(err, "the archive is damaged: %s", zip_file_strerror(file));
        return NULL;
    }
    const unsigned char *there =
        st->comp_method == ZIP_CM_STORE ? place_of(z, head, got, bytes) : NULL;
    return there ? there : unpack(z, file, head, got, bytes, err);
}

bool npz_array(Npz *z, int64_t i, NpyArray *out, RtError *err)
{
    zip_stat_t st;
    if (zip_stat_index(z->zip, (zip_uint64_t)i, 0, &st) != 0)
        return rt_error(err, "the archive is damaged: %s", zip_strerror(z->zip));
    if (!check_entry(z, &st, err))
        return false;
    zip_file_t *file = zip_fopen_index(z->zip, (zip_uint64_t)i, 0);
    if (!file)
        return rt_error(err, "the archive is damaged: %s", zip_strerror(z->zip));
    const unsigned char *bytes = entry_bytes(z, file, &st, err);
    zip_fclose(file);
    return bytes && npy_parse(bytes, (int64_t)st.size, out, err);
}
