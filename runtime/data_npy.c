/* SPDX-License-Identifier: GPL-3.0-or-later */
/* npy(FILES): one NumPy array per field, the file's name without .npy is the field's; the first
 * axis counts examples.  Source: NumPy's NEP 1 and numpy/lib/format.py. */
#include "runtime/data_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HEADER = 1 << 16 };

static const struct {
    const char *descr;
    int64_t bytes;
    RtDType dtype; /* of the field */
} npy_types[NPY_TYPE_COUNT] = {
    [NPY_F4] = {"f4", 4, RT_F32}, [NPY_F8] = {"f8", 8, RT_F32}, [NPY_I4] = {"i4", 4, RT_I32},
    [NPY_I8] = {"i8", 8, RT_I32}, [NPY_U1] = {"u1", 1, RT_U8},  [NPY_B1] = {"b1", 1, RT_BOOL},
};

int64_t npy_type_bytes(NpyType type)
{
    return npy_types[type].bytes;
}

/* ---- the header: a Python dict literal ---- */

typedef struct Scan {
    const char *p, *end;
} Scan;

static void skip_space(Scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\n'))
        s->p++;
}

static bool accept(Scan *s, const char *text)
{
    skip_space(s);
    size_t n = strlen(text);
    if ((size_t)(s->end - s->p) < n || memcmp(s->p, text, n) != 0)
        return false;
    s->p += n;
    return true;
}

/* A quoted string without escapes. */
static bool read_string(Scan *s, char *out, size_t size)
{
    skip_space(s);
    if (s->p == s->end || (*s->p != '\'' && *s->p != '"'))
        return false;
    char quote = *s->p++;
    size_t n = 0;
    for (; s->p < s->end && *s->p != quote; s->p++) {
        if (*s->p == '\\' || n + 1 >= size)
            return false;
        out[n++] = *s->p;
    }
    out[n] = 0;
    return accept(s, (char[]){quote, 0});
}

static bool read_integer(Scan *s, int64_t *out)
{
    skip_space(s);
    if (s->p == s->end || *s->p < '0' || *s->p > '9')
        return false;
    for (*out = 0; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++)
        if (!rt_mul(*out, 10, out) || !rt_add(*out, *s->p - '0', out))
            return false;
    accept(s, "L"); /* Python 2 wrote long integers so */
    return true;
}

static bool read_shape(Scan *s, NpyArray *out)
{
    if (!accept(s, "("))
        return false;
    for (out->rank = 0; !accept(s, ")"); out->rank++) {
        if (out->rank == RT_MAX_RANK || !read_integer(s, &out->dims[out->rank]))
            return false;
        if (!accept(s, ",")) { /* "(3)" is no tuple, but NumPy's reader takes "(3, 4)" */
            out->rank++;
            return accept(s, ")");
        }
    }
    return true;
}

/* The type that is read and most like one that is not: integers, or f4 (also of dates and text). */
static const char *nearest_type(const char *descr)
{
    const char *kind = descr + strspn(descr, "<>|=");
    return *kind == 'i' || *kind == 'u'   ? "int32"
           : *kind == '?' || *kind == 'b' ? "bool"
                                          : "float32";
}

static bool read_descr(Scan *s, NpyArray *out, RtError *err)
{
    char descr[16];
    if (!read_string(s, descr, sizeof descr))
        return rt_error(err,
                        "the .npy element type is not a plain one, but a record: save each field "
                        "of it as an array, a[\"NAME\"]");
    int t = 0;
    for (; t < NPY_TYPE_COUNT; t++) {
        bool one_byte = npy_types[t].bytes == 1;
        if (descr[0] == (one_byte ? '|' : '<') && strcmp(descr + 1, npy_types[t].descr) == 0)
            break;
    }
    if (t == NPY_TYPE_COUNT)
        return rt_error(err,
                        "element type '%s': <f4, <f8, <i4, <i8, |u1 and |b1 are read; in Python: "
                        "a.astype(\"%s\")",
                        descr, nearest_type(descr));
    out->type = (NpyType)t;
    return true;
}

static bool read_key(Scan *s, NpyArray *out, unsigned *seen, RtError *err)
{
    char key[32];
    if (!read_string(s, key, sizeof key) || !accept(s, ":"))
        return rt_error(err, "the .npy header is damaged");
    if (strcmp(key, "descr") == 0) {
        *seen |= 1;
        return read_descr(s, out, err);
    }
    if (strcmp(key, "fortran_order") == 0) {
        *seen |= 2;
        return accept(s, "False") ||
               rt_error(err, "Fortran order; in Python: numpy.ascontiguousarray(a)");
    }
    if (strcmp(key, "shape") == 0) {
        *seen |= 4;
        return read_shape(s, out) || rt_error(err,
                                              "the .npy shape is damaged or has more than %d "
                                              "dimensions",
                                              RT_MAX_RANK);
    }
    return rt_error(err, "the .npy header has an unknown key '%s'", key);
}

static bool read_header(Scan s, NpyArray *out, RtError *err)
{
    unsigned seen = 0;
    bool ok = accept(&s, "{");
    while (ok && !accept(&s, "}")) {
        if (!read_key(&s, out, &seen, err))
            return false;
        if (!accept(&s, ",")) {
            ok = accept(&s, "}");
            break;
        }
    }
    skip_space(&s);
    if (!ok || s.p != s.end || seen != 7)
        return rt_error(err, "the .npy header is damaged");
    return true;
}

bool npy_parse(const unsigned char *bytes, int64_t n, NpyArray *out, RtError *err)
{
    *out = (NpyArray){0};
    if (n < 12 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return rt_error(err, "not a .npy file");
    if (bytes[6] < 1 || bytes[6] > 3)
        return rt_error(err, ".npy version %d: 1 to 3 are read", bytes[6]);
    int64_t start = bytes[6] == 1 ? 10 : 12, len = bytes[8] | bytes[9] << 8;
    if (bytes[6] > 1)
        len |= (int64_t)bytes[10] << 16 | (int64_t)bytes[11] << 24;
    if (len > MAX_HEADER || len > n - start)
        return rt_error(err, "the .npy header is cut off");
    const char *text = (const char *)bytes + start;
    if (!read_header((Scan){text, text + len}, out, err))
        return false;
    int64_t elements, size;
    if (!rt_elements(out->rank, out->dims, &elements) ||
        !rt_mul(elements, npy_type_bytes(out->type), &size) || size != n - start - len)
        return rt_error(err, "the .npy shape does not fit the %lld bytes that follow the header",
                        (long long)(n - start - len));
    out->data = bytes + start + len;
    return true;
}

/* ---- the data set ---- */

typedef struct Npy {
    FileBytes file[DATA_MAX_FIELDS];
    NpyArray array[DATA_MAX_FIELDS];
    int n;
} Npy;

static int64_t integer_at(const NpyArray *a, int64_t i)
{
    const unsigned char *p = a->data + i * npy_type_bytes(a->type);
    int32_t v4;
    int64_t v8;
    if (a->type == NPY_I4) {
        memcpy(&v4, p, 4);
        return v4;
    }
    if (a->type == NPY_I8) {
        memcpy(&v8, p, 8);
        return v8;
    }
    return *p;
}

static double float_at(const NpyArray *a, int64_t i)
{
    const unsigned char *p = a->data + i * npy_type_bytes(a->type);
    float v4;
    double v8;
    if (a->type == NPY_F4) {
        memcpy(&v4, p, 4);
        return (double)v4;
    }
    memcpy(&v8, p, 8);
    return v8;
}

static bool is_float(NpyType type)
{
    return type == NPY_F4 || type == NPY_F8;
}

/* Smallest and largest integer; what does not fit 32 bits, or a negative label, is refused. */
static bool measure(const NpyArray *a, DataField *f, RtError *err)
{
    int64_t n;
    if (is_float(a->type) || !rt_elements(a->rank, a->dims, &n))
        return true;
    f->min_id = INT64_MAX;
    f->max_id = INT64_MIN;
    for (int64_t i = 0; i < n; i++) {
        int64_t v = integer_at(a, i);
        if (v != (int32_t)v)
            return rt_error(err, "element %lld is %lld, which does not fit 32 bits", (long long)i,
                            (long long)v);
        if ((f->label || f->ignored != DATA_IGNORE) && v == f->ignored)
            continue;
        f->min_id = v < f->min_id ? v : f->min_id;
        f->max_id = v > f->max_id ? v : f->max_id;
    }
    if (f->label && f->min_id < 0)
        return rt_error(err, "label %lld: labels are 0, 1, ... or %d (ignored)",
                        (long long)f->min_id, f->ignored);
    if (f->max_id == INT64_MIN)
        f->min_id = f->max_id = -1;
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
    bool label = !is_float(a->type) && a->type != NPY_B1 &&
                 (strcmp(name, "label") == 0 || strcmp(name, "y") == 0);
    RtDType dtype = label ? RT_I32 : npy_types[a->type].dtype; /* labels have to be signed */
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
    int64_t n = ds->field_bytes[f] / rt_dtype_bytes(ds->field[f].dtype), first = i * n;
    float *real = dst;
    int32_t *integer = dst;
    unsigned char *byte = dst;
    for (int64_t k = 0; k < n; k++) {
        if (is_float(a->type))
            real[k] = (float)float_at(a, first + k);
        else if (ds->field[f].dtype == RT_I32)
            integer[k] = (int32_t)integer_at(a, first + k);
        else
            byte[k] = a->data[first + k];
    }
}

const DataKind data_npy = {.name = "npy",
                           .traits.field_suffix = ".npy",
                           .open = npy_open,
                           .close = npy_close,
                           .example = npy_example};
