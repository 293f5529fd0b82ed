/* SPDX-License-Identifier: GPL-3.0-or-later */
/* npy(FILES): one NumPy array per field, the file's name without .npy is the field's; the first
 * axis counts examples. */
#include "runtime/data_internal.h"
#include "runtime/npy.h"

#include <stdlib.h>
#include <string.h>

typedef struct Npy {
    FileBytes file[DATA_MAX_FIELDS];
    NpyArray array[DATA_MAX_FIELDS];
    int n;
} Npy;

/* Smallest and largest integer that is not the ignored label; a negative label is refused. */
static bool measure(const NpyArray *a, DataField *f, RtError *err)
{
    bool ignores = f->label || f->ignored != DATA_IGNORE;
    if (npy_is_float(a->type))
        return true;
    if (!npy_range(a, ignores ? &f->ignored : NULL, &f->min_id, &f->max_id, err))
        return false;
    if (f->min_id > f->max_id)
        f->min_id = f->max_id = -1;
    else if (f->label && f->min_id < 0)
        return rt_error(err, "label %lld: labels are 0, 1, ... or %d (ignored)",
                        (long long)f->min_id, f->ignored);
    return true;
}

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
    char name[64];
    if (s->n == DATA_MAX_FIELDS)
        return rt_error(err, "more than %d arrays", DATA_MAX_FIELDS);
    FileBytes *file = &s->file[s->n];
    NpyArray *a = &s->array[s->n];
    if (!file_map(path, file, err))
        return false;
    s->n++;
    if (!npy_parse(file->data, file->bytes, a, err) || !field_name(path, name, err))
        return false;
    if (dataset_find_field(ds, name) >= 0)
        return rt_error(err, "two files give field %s", name);
    if (a->rank < 1)
        return rt_error(err, "a single number is no data set; the first axis counts examples");
    if (s->n > 1 && a->dims[0] != ds->total)
        return rt_error(err,
                        "%lld examples, but %s.npy has %lld: row i of each file is example i; in "
                        "Python: a[:%lld] keeps as many of the longer one",
                        (long long)a->dims[0], ds->field[0].name, (long long)ds->total,
                        (long long)(a->dims[0] < ds->total ? a->dims[0] : ds->total));
    bool label = !npy_is_float(a->type) && a->type != NPY_B1 &&
                 (strcmp(name, "label") == 0 || strcmp(name, "y") == 0);
    RtDType dtype = label ? RT_I32 : npy_type_dtype(a->type); /* labels have to be signed */
    DataField *f = data_add_field(ds, name, dtype, a->rank - 1, a->dims + 1);
    f->label = label;
    ds->total = a->dims[0];
    ds->loaded_bytes += file->bytes;
    return measure(a, f, err);
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
    const NpyArray *a = &((const Npy *)ds->state)->array[f];
    int64_t n = ds->field_bytes[f] / rt_dtype_bytes(ds->field[f].dtype);
    npy_copy(a, i * n, n, ds->field[f].dtype, dst);
}

const DataKind data_npy = {.name = "npy",
                           .traits.field_suffix = ".npy",
                           .open = npy_open,
                           .close = npy_close,
                           .example = npy_example};
