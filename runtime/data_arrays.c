/* SPDX-License-Identifier: GPL-3.0-or-later */
/* npz(FILE) and safetensors(FILE): named arrays of one file. */
#include "runtime/data_arrays.h"

#include "runtime/array_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what npy shares ---- */

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

bool arrays_add(Dataset *ds, ArraySet *set, const char *name, const char *suffix, const NpyArray *a,
                RtError *err)
{
    if (ds->n_fields == DATA_MAX_FIELDS)
        return rt_error(err, "more than %d arrays", DATA_MAX_FIELDS);
    if (dataset_find_field(ds, name) >= 0)
        return rt_error(err, "two arrays give field %s", name);
    if (a->rank < 1)
        return rt_error(err, "a single number is no data set; the first axis counts examples");
    if (ds->n_fields > 0 && a->dims[0] != ds->total)
        return rt_error(err,
                        "%lld examples, but %s%s has %lld: row i of each is example i; in Python: "
                        "a[:%lld] keeps as many of the longer one",
                        (long long)a->dims[0], ds->field[0].name, suffix, (long long)ds->total,
                        (long long)(a->dims[0] < ds->total ? a->dims[0] : ds->total));
    bool label = !npy_is_float(a->type) && a->type != NPY_B1 &&
                 (strcmp(name, "label") == 0 || strcmp(name, "y") == 0);
    RtDType dtype = label ? RT_I32 : npy_type_dtype(a->type); /* labels have to be signed */
    set->array[ds->n_fields] = *a;
    DataField *f = data_add_field(ds, name, dtype, a->rank - 1, a->dims + 1);
    f->label = label;
    ds->total = a->dims[0];
    return measure(a, f, err);
}

void arrays_example(const Dataset *ds, const ArraySet *set, int64_t i, int f, void *dst)
{
    int64_t n = ds->field_bytes[f] / rt_dtype_bytes(ds->field[f].dtype);
    npy_copy(&set->array[f], i * n, n, ds->field[f].dtype, dst);
}

/* ---- files of named arrays ---- */

typedef struct Named {
    ArraySet set;
    ArrayFile *file;
} Named;

static bool add_named(Dataset *ds, const char *path, RtError *err)
{
    Named *s = ds->state;
    ArrayName name;
    NpyArray array;
    for (const char *at = ds->spec.columns; array_name_next(&at, &name);)
        if (!array_file_find(s->file, name.array, &array, err) ||
            !(arrays_add(ds, &s->set, name.field, "", &array, err) ||
              rt_error_prefix(err, "%s: %s", path, name.array)))
            return false;
    ds->loaded_bytes = array_file_bytes(s->file);
    return ds->n_fields > 0 || rt_error(err, "%s: no array is named", path);
}

static bool open_named(Dataset *ds, ArrayFormat format, RtError *err)
{
    const char *path = ds->spec.path ? ds->spec.path : "";
    Named *s = ds->state = rt_alloc(1, sizeof *s, err);
    if (!s)
        return false;
    if (!*path)
        return rt_error(err, "no data file is named; give a path in the model or with --data");
    s->file = array_file_open(path, format, err);
    return s->file && add_named(ds, path, err);
}

static bool npz_open(Dataset *ds, RtError *err)
{
    return open_named(ds, ARRAYS_NPZ, err);
}

static bool safetensors_open_set(Dataset *ds, RtError *err)
{
    return open_named(ds, ARRAYS_SAFETENSORS, err);
}

static void named_close(Dataset *ds)
{
    Named *s = ds->state;
    if (s)
        array_file_close(s->file);
    free(s);
}

static void named_example(const Dataset *ds, int64_t i, int f, void *dst)
{
    arrays_example(ds, &((const Named *)ds->state)->set, i, f, dst);
}

const DataKind data_npz = {.name = "npz",
                           .traits.named_arrays = true,
                           .open = npz_open,
                           .close = named_close,
                           .example = named_example};

const DataKind data_safetensors = {.name = "safetensors",
                                   .traits.named_arrays = true,
                                   .open = safetensors_open_set,
                                   .close = named_close,
                                   .example = named_example};
