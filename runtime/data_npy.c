/* SPDX-License-Identifier: GPL-3.0-or-later */
/* npy(FILES): one NumPy array per field, the file's name without .npy is the field's; the first
 * axis counts examples. */
#include "runtime/data_arrays.h"

#include <stdlib.h>
#include <string.h>

typedef struct Npy {
    ArraySet set;
    FileBytes file[DATA_MAX_FIELDS];
    int n;
} Npy;

/* "dir/image.npy" -> "image". */
static bool field_name(const char *path, char name[64], RtError *err)
{
    const char *base = path_base(path);
    size_t n = strcspn(base, ".");
    if (n == 0 || n >= 64 ||
        strspn(base, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                     "0123456789_") < n ||
        (base[0] >= '0' && base[0] <= '9'))
        return rt_error(err,
                        "the file's name becomes the field's: rename it to something like x.npy");
    memcpy(name, base, n);
    name[n] = 0;
    return true;
}

static bool add_array(Dataset *ds, const char *path, RtError *err)
{
    Npy *s = ds->state;
    NpyArray array;
    char name[64];
    if (s->n == DATA_MAX_FIELDS)
        return rt_error(err, "more than %d arrays", DATA_MAX_FIELDS);
    FileBytes *file = &s->file[s->n];
    if (!file_map(path, file, err))
        return false;
    s->n++;
    ds->loaded_bytes += file->bytes;
    return npy_parse(file->data, file->bytes, &array, err) && field_name(path, name, err) &&
           arrays_add(ds, &s->set, name, ".npy", &array, err);
}

static bool npy_open(Dataset *ds, RtError *err)
{
    PathList paths;
    ds->state = rt_alloc(1, sizeof(Npy), err);
    if (!ds->state || !paths_expand(ds->spec.path, ".npy", &paths, err))
        return false;
    bool ok = true;
    for (int64_t i = 0; ok && i < paths.n; i++)
        ok = add_array(ds, paths.path[i], err) || rt_error_prefix(err, "%s", paths.path[i]);
    paths_free(&paths);
    return ok;
}

static void npy_close(Dataset *ds)
{
    Npy *s = ds->state;
    for (int i = 0; s && i < s->n; i++)
        file_release(&s->file[i]);
    free(s);
}

static void npy_example(const Dataset *ds, int64_t i, int f, void *dst)
{
    arrays_example(ds, &((const Npy *)ds->state)->set, i, f, dst);
}

const DataKind data_npy = {.name = "npy",
                           .traits.field_suffix = ".npy",
                           .open = npy_open,
                           .close = npy_close,
                           .example = npy_example};
