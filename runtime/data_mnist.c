/* SPDX-License-Identifier: GPL-3.0-or-later */
/* mnist(DIR): IDX files, gzip or not.  Source: the format note at the end of LeCun, Cortes and
 * Burges' MNIST page: two zero bytes, a type byte (8 = unsigned byte), the rank, big-endian sizes,
 * data. */
#include "runtime/data_internal.h"
#include "runtime/unpack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A packed file of more is unpacked by gunzip; data sets of this format have 50 MB. */
static const int64_t IDX_MAX_UNPACKED = (int64_t)4 << 30;
enum { DEFLATE_MOST = 1032 };

static int64_t read_be32(const unsigned char *p)
{
    return (int64_t)p[0] << 24 | (int64_t)p[1] << 16 | (int64_t)p[2] << 8 | p[3];
}

/* The first four bytes: everything but the sizes. */
static bool idx_kind(const unsigned char *bytes, int64_t n, IdxArray *out, RtError *err)
{
    *out = (IdxArray){0};
    if (n < 4 || bytes[0] != 0 || bytes[1] != 0)
        return rt_error(err, "not an IDX file: it does not start with two zero bytes");
    if (bytes[2] != 8)
        return rt_error(err, "IDX type 0x%02x: only unsigned bytes (0x08) are read",
                        (unsigned)bytes[2]);
    out->rank = bytes[3];
    return (out->rank >= 1 && out->rank <= 4) ||
           rt_error(err, "IDX rank %d: 1 to 4 are read", out->rank);
}

/* bytes: those of the header; *size: how many it promises after it. */
static bool idx_sizes(const unsigned char *bytes, IdxArray *out, int64_t *size, RtError *err)
{
    for (int i = 0; i < out->rank; i++)
        out->dims[i] = read_be32(bytes + 4 + 4 * i);
    return rt_elements(out->rank, out->dims, size) ||
           rt_error(err, "the IDX header promises more than the address space");
}

static int64_t header_bytes(const IdxArray *array)
{
    return 4 + 4 * array->rank;
}

static bool wrong_size(int64_t promised, int64_t follow, RtError *err)
{
    return rt_error(err, "the IDX header promises %lld bytes, but %lld follow", (long long)promised,
                    (long long)follow);
}

bool idx_parse(const unsigned char *bytes, int64_t n, IdxArray *out, RtError *err)
{
    int64_t size;
    if (!idx_kind(bytes, n, out, err))
        return false;
    int64_t start = header_bytes(out);
    if (n < start)
        return rt_error(err, "the IDX header is cut off");
    if (!idx_sizes(bytes, out, &size, err))
        return false;
    out->data = bytes + start;
    return size == n - start || wrong_size(size, n - start, err);
}

/* Before memory is allocated: a file that is not packed has what its header says, a packed one may
 * have it (deflate makes 1,032 bytes of one at best) and stays within the limit. */
static bool idx_possible(const Unpack *u, const IdxArray *array, int64_t size, RtError *err)
{
    int64_t follow = u->bytes - header_bytes(array);
    if (!u->packed)
        return size == follow || wrong_size(size, follow, err);
    if (size > IDX_MAX_UNPACKED)
        return rt_error(err,
                        "the IDX header promises %lld bytes; at most %lld are unpacked: unpack it "
                        "with gunzip",
                        (long long)size, (long long)IDX_MAX_UNPACKED);
    return size / DEFLATE_MOST <= u->bytes ||
           rt_error(err, "the IDX header promises %lld bytes, too many for %lld packed ones",
                    (long long)size, (long long)u->bytes);
}

static bool idx_unpack(Unpack *u, int rank, FileBytes *file, IdxArray *array, RtError *err)
{
    unsigned char head[4 + 4 * 4];
    int64_t size, got = unpack_some(u, head, 4, err);
    if (got < 0 || !idx_kind(head, got, array, err))
        return false;
    if (array->rank != rank)
        return rt_error(err, "rank %d instead of %d", array->rank, rank);
    int64_t start = header_bytes(array);
    if (!unpack_read(u, head + 4, start - 4, err) || !idx_sizes(head, array, &size, err) ||
        !idx_possible(u, array, size, err))
        return false;
    unsigned char *data = rt_alloc(size + 1, 1, err);
    *file = (FileBytes){data, size, false};
    array->data = data;
    return data && unpack_read(u, data, size, err) && unpack_at_end(u, err);
}

bool idx_read(const char *path, int rank, FileBytes *file, IdxArray *array, RtError *err)
{
    Unpack u;
    *file = (FileBytes){0};
    if (!unpack_open(&u, path, err))
        return false;
    bool ok = idx_unpack(&u, rank, file, array, err) || rt_error_prefix(err, "%s", path);
    unpack_close(&u);
    return ok;
}

/* One pair of files: images [n,h,w] and labels [n]. */
typedef struct Pair {
    FileBytes image_file, label_file;
    IdxArray image, label;
} Pair;

typedef struct Mnist {
    Pair pair[2]; /* to train on; the test part (or empty) */
} Mnist;

/* Images or labels of one part under their usual names; NULL when absent. */
static char *find_file(const char *dir, const char *part, const char *what)
{
    static const char *const endings[] = {"-ubyte", "-ubyte.gz"};
    for (int i = 0; i < 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s-%s%s%s%s", part, what, i / 2 ? "." : "-",
                 strcmp(what, "images") == 0 ? "idx3" : "idx1", endings[i % 2]);
        char *path = path_join(dir, name, NULL);
        if (path && file_exists(path))
            return path;
        free(path);
    }
    return NULL;
}

/* True with an empty pair when neither file is there. */
static bool read_pair(const char *dir, const char *part, Pair *pair, RtError *err)
{
    char *image = find_file(dir, part, "images"), *label = find_file(dir, part, "labels");
    bool ok = true;
    if (image && label)
        ok = idx_read(image, 3, &pair->image_file, &pair->image, err) &&
             idx_read(label, 1, &pair->label_file, &pair->label, err);
    else if (image || label)
        ok = rt_error(err, "%s has %s-%s but not %s-%s", dir, part, image ? "images" : "labels",
                      part, image ? "labels" : "images");
    if (ok && pair->image.dims[0] != pair->label.dims[0])
        ok = rt_error(err, "%s: %s-images has %lld images, %s-labels %lld labels", dir, part,
                      (long long)pair->image.dims[0], part, (long long)pair->label.dims[0]);
    free(image);
    free(label);
    return ok;
}

static void add_fields(Dataset *ds, const Mnist *m)
{
    data_add_field(ds, "image", RT_U8, 2, &m->pair[0].image.dims[1]);
    DataField *label = data_add_field(ds, "label", RT_I32, 0, NULL);
    label->label = true;
    label->min_id = 255;
    for (int p = 0; p < 2; p++)
        for (int64_t i = 0; i < m->pair[p].label.dims[0]; i++) {
            int64_t v = m->pair[p].label.data[i];
            label->max_id = v > label->max_id ? v : label->max_id;
            label->min_id = v < label->min_id ? v : label->min_id;
        }
}

static bool mnist_open(Dataset *ds, RtError *err)
{
    const char *dir = ds->spec.path ? ds->spec.path : "";
    if (!folder_exists(dir))
        return rt_error(err, "%s: no such folder", dir);
    Mnist *m = ds->state = rt_alloc(1, sizeof *m, err);
    if (!m || !read_pair(dir, "train", &m->pair[0], err) ||
        !read_pair(dir, "t10k", &m->pair[1], err))
        return false;
    if (m->pair[0].image.dims[0] == 0) { /* only the test part: that is what there is */
        Pair empty = m->pair[0];
        m->pair[0] = m->pair[1];
        m->pair[1] = empty;
    }
    const IdxArray *a = &m->pair[0].image, *b = &m->pair[1].image;
    if (a->dims[0] == 0)
        return rt_error(err,
                        "%s: neither train-images-idx3-ubyte and train-labels-idx1-ubyte nor the "
                        "t10k- pair (.gz or not) is in this folder",
                        dir);
    if (b->dims[0] && (a->dims[1] != b->dims[1] || a->dims[2] != b->dims[2]))
        return rt_error(err, "%s: images to train on and test images differ in size", dir);
    ds->test = b->dims[0];
    ds->total = a->dims[0] + b->dims[0];
    for (int p = 0; p < 2; p++)
        ds->loaded_bytes += m->pair[p].image_file.bytes + m->pair[p].label_file.bytes;
    add_fields(ds, m);
    return true;
}

static void mnist_close(Dataset *ds)
{
    Mnist *m = ds->state;
    for (int p = 0; m && p < 2; p++) {
        file_release(&m->pair[p].image_file);
        file_release(&m->pair[p].label_file);
    }
    free(m);
}

static void mnist_example(const Dataset *ds, int64_t i, int f, void *dst)
{
    const Mnist *m = ds->state;
    int64_t first = m->pair[0].image.dims[0];
    const Pair *pair = &m->pair[i >= first];
    i -= i >= first ? first : 0;
    if (f == 0)
        memcpy(dst, pair->image.data + i * ds->field_bytes[0], (size_t)ds->field_bytes[0]);
    else
        *(int32_t *)dst = pair->label.data[i];
}

const DataKind data_mnist = {
    .name = "mnist",
    .traits.other_dims =
        "mnist(...) has images of 28 x 28; save others as .npy and read them with npy(...)",
    .traits.counted = "images",
    .open = mnist_open,
    .close = mnist_close,
    .example = mnist_example};
