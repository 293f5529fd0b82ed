/* SPDX-License-Identifier: GPL-3.0-or-later */
/* cifar10(DIR): the binary version of CIFAR-10.  Source: Krizhevsky's CIFAR page: records of one
 * label byte and 3 * 32 * 32 bytes of red, green and blue planes. */
#include "runtime/data_internal.h"
#include "runtime/unpack.h"

#include <stdlib.h>
#include <string.h>

enum { PIXELS = 3 * 32 * 32, RECORD = 1 + PIXELS, CLASSES = 10, MAX_BATCHES = 5 };

/* The files have 30 MB each. */
static const int64_t MAX_FILE_BYTES = (int64_t)1 << 30;

typedef struct Cifar {
    FileBytes file[MAX_BATCHES + 1]; /* to train on, then the test file */
    int n;
} Cifar;

static bool add_file(Dataset *ds, char *path, RtError *err)
{
    Cifar *c = ds->state;
    FileBytes *file = &c->file[c->n];
    if (!file_read_gz(path, MAX_FILE_BYTES, file, err))
        return false;
    c->n++;
    if (file->bytes == 0 || file->bytes % RECORD != 0)
        return rt_error(err, "%s: %lld bytes are not a whole number of %d-byte records", path,
                        (long long)file->bytes, RECORD);
    for (int64_t at = 0; at < file->bytes; at += RECORD)
        if (file->data[at] >= CLASSES)
            return rt_error(err, "%s: label %d of record %lld is not below %d", path,
                            file->data[at], (long long)(at / RECORD), CLASSES);
    ds->total += file->bytes / RECORD;
    ds->loaded_bytes += file->bytes;
    return true;
}

/* True without doing anything when the file is absent. */
static bool try_file(Dataset *ds, const char *name, RtError *err)
{
    char *path = path_join(ds->spec.path ? ds->spec.path : "", name, err);
    bool ok = path && (!file_exists(path) || add_file(ds, path, err));
    free(path);
    return ok;
}

static bool cifar_open(Dataset *ds, RtError *err)
{
    static const char *const names[MAX_BATCHES] = {"data_batch_1.bin", "data_batch_2.bin",
                                                   "data_batch_3.bin", "data_batch_4.bin",
                                                   "data_batch_5.bin"};
    const char *dir = ds->spec.path ? ds->spec.path : "";
    if (!folder_exists(dir))
        return rt_error(err, "%s: no such folder", dir);
    ds->state = rt_alloc(1, sizeof(Cifar), err);
    for (int i = 0; i < MAX_BATCHES; i++)
        if (!ds->state || !try_file(ds, names[i], err))
            return false;
    int64_t train = ds->total;
    if (!try_file(ds, "test_batch.bin", err))
        return false;
    if (ds->total == 0)
        return rt_error(err,
                        "%s: neither data_batch_1.bin ... data_batch_5.bin nor test_batch.bin "
                        "(CIFAR-10's binary version) is in this folder",
                        dir);
    ds->test = train ? ds->total - train : 0;
    data_add_field(ds, "image", RT_U8, 3, (int64_t[]){3, 32, 32});
    DataField *label = data_add_field(ds, "label", RT_I32, 0, NULL);
    label->label = true;
    label->min_id = 0;
    label->max_id = CLASSES - 1;
    return true;
}

static void cifar_close(Dataset *ds)
{
    Cifar *c = ds->state;
    for (int i = 0; c && i < c->n; i++)
        file_release(&c->file[i]);
    free(c);
}

static void cifar_example(const Dataset *ds, int64_t i, int f, void *dst)
{
    const Cifar *c = ds->state;
    const FileBytes *file = c->file;
    for (; i >= file->bytes / RECORD; file++)
        i -= file->bytes / RECORD;
    const unsigned char *record = file->data + i * RECORD;
    if (f == 0)
        memcpy(dst, record + 1, PIXELS);
    else
        *(int32_t *)dst = record[0];
}

const DataKind data_cifar10 = {.name = "cifar10",
                               .traits.counted = "images",
                               .open = cifar_open,
                               .close = cifar_close,
                               .example = cifar_example};
