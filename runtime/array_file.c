/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/array_file.h"

#include "runtime/npz.h"
#include "runtime/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ArrayFile {
    FileBytes map;
    Npz *npz; /* of one of the two */
    SafeFile *tensors;
    char path[];
};

ArrayFile *array_file_open(const char *path, ArrayFormat format, RtError *err)
{
    ArrayFile *file = rt_alloc((int64_t)(sizeof *file + strlen(path) + 1), 1, err);
    if (!file)
        return NULL;
    strcpy(file->path, path);
    bool ok = file_map(path, &file->map, err);
    if (ok && format == ARRAYS_NPZ)
        file->npz = npz_parse(file->map.data, file->map.bytes, err);
    else if (ok)
        file->tensors = safetensors_parse(file->map.data, file->map.bytes, err);
    if (file->npz || file->tensors)
        return file;
    array_file_close(file);
    if (ok)
        rt_error_prefix(err, "%s", path);
    return NULL;
}

void array_file_close(ArrayFile *file)
{
    if (!file)
        return;
    npz_close(file->npz);
    safetensors_close(file->tensors);
    file_release(&file->map);
    free(file);
}

int64_t array_file_bytes(const ArrayFile *file)
{
    return file->map.bytes + (file->npz ? npz_unpacked(file->npz) : 0);
}

/* ---- finding ---- */

static int64_t count(const ArrayFile *file)
{
    return file->npz ? npz_count(file->npz) : safetensors_count(file->tensors);
}

static const char *name_of(ArrayFile *file, int64_t i)
{
    return file->npz ? npz_name(file->npz, i) : safetensors_at(file->tensors, i)->name;
}

/* The message names some of those that there are. */
static bool not_there(ArrayFile *file, const char *name, RtError *err)
{
    char names[200] = "";
    size_t at = 0;
    for (int64_t i = 0; i < count(file) && at + 1 < sizeof names; i++) {
        const char *other = name_of(file, i);
        int n = other ? snprintf(names + at, sizeof names - at, "%s%s", at ? ", " : "", other) : 0;
        at += (size_t)n;
    }
    return rt_error(err, "there is no array %s, but %s%s", name, *names ? names : "none at all",
                    at + 1 < sizeof names ? "" : " ...");
}

static bool of_tensor(const SafeTensor *t, NpyArray *out, RtError *err)
{
    static const struct {
        RtDType dtype;
        NpyType type;
    } types[] = {{RT_F16, NPY_F2}, {RT_BF16, NPY_BF16}, {RT_F32, NPY_F4}, {RT_F64, NPY_F8},
                 {RT_I32, NPY_I4}, {RT_I64, NPY_I8},    {RT_U8, NPY_U1},  {RT_BOOL, NPY_B1}};
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        if (types[k].dtype == t->dtype) {
            *out = (NpyArray){.type = types[k].type, .rank = t->rank, .data = t->data};
            memcpy(out->dims, t->dims, sizeof out->dims);
            return true;
        }
    return rt_error(err,
                    "element type %s: F16, BF16, F32, F64, I32, I64, U8 and BOOL are read; in "
                    "PyTorch: t.float() or t.int()",
                    t->type_name);
}

static bool find(ArrayFile *file, const char *name, NpyArray *out, RtError *err)
{
    int64_t found = -1;
    for (int64_t i = 0; i < count(file); i++) {
        const char *other = name_of(file, i);
        if (!other || strcmp(other, name) != 0)
            continue;
        if (found >= 0)
            return rt_error(err, "two arrays are called %s", name);
        found = i;
    }
    if (found < 0)
        return not_there(file, name, err);
    bool ok = file->npz ? npz_array(file->npz, found, out, err)
                        : of_tensor(safetensors_at(file->tensors, found), out, err);
    return ok || rt_error_prefix(err, "%s", name);
}

bool array_file_find(ArrayFile *file, const char *name, NpyArray *out, RtError *err)
{
    return find(file, name, out, err) || rt_error_prefix(err, "%s", file->path);
}

/* ---- names ---- */

/* A text of n bytes, cut off where it is too long for `to`. */
static void take(char *to, size_t room, const char *from, size_t n)
{
    n = n < room ? n : room - 1;
    memcpy(to, from, n);
    to[n] = 0;
}

bool array_name_next(const char **at, ArrayName *out)
{
    const char *line = *at;
    if (!line || !*line)
        return false;
    size_t end = strcspn(line, "\n"), field = strcspn(line, "\t\n");
    size_t array = field + (line[field] == '\t');
    take(out->field, sizeof out->field, line, field);
    take(out->array, sizeof out->array, line + array, end - array);
    *at = line + end + (line[end] == '\n');
    return true;
}

void array_name_of(const char *list, const char *field, char out[ARRAY_MAX_NAME + 1])
{
    ArrayName name;
    take(out, ARRAY_MAX_NAME + 1, field, strlen(field));
    for (const char *at = list; array_name_next(&at, &name);)
        if (strcmp(name.field, field) == 0)
            memcpy(out, name.array, sizeof name.array);
}
