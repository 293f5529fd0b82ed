/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/safetensors.h"

#include "runtime/file.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are stored little-endian");

/* The reference reader refuses longer headers too. */
static const int64_t MAX_HEADER = 100 * 1000 * 1000;
static const char METADATA[] = "__metadata__";

static const struct {
    const char *name;
    int64_t bytes;
    RtDType dtype;
} types[] = {
    {"F32", 4, RT_F32},   {"F16", 2, RT_F16},       {"BF16", 2, RT_BF16},     {"F64", 8, RT_F64},
    {"I32", 4, RT_I32},   {"I64", 8, RT_I64},       {"U8", 1, RT_U8},         {"BOOL", 1, RT_BOOL},
    {"I8", 1, RT_OTHER},  {"F8_E5M2", 1, RT_OTHER}, {"F8_E4M3", 1, RT_OTHER}, {"I16", 2, RT_OTHER},
    {"U16", 2, RT_OTHER}, {"U32", 4, RT_OTHER},     {"U64", 8, RT_OTHER},
};
enum { N_TYPES = sizeof types / sizeof *types };

struct SafeFile {
    FileBytes map;
    json_t *header;     /* owns names and metadata */
    SafeTensor *tensor; /* by offset */
    SafeTensor **named; /* by name */
    int64_t n;
};

/* ---- reading ---- */

static bool read_integer(const json_t *j, int64_t *out)
{
    *out = json_integer_value(j);
    return json_is_integer(j) && *out >= 0;
}

static bool read_shape(const json_t *shape, SafeTensor *t, RtError *err)
{
    if (!json_is_array(shape) || json_array_size(shape) > RT_MAX_RANK)
        return rt_error(err, "tensor %s: the shape is no list of at most %d sizes", t->name,
                        RT_MAX_RANK);
    t->rank = (int)json_array_size(shape);
    for (int i = 0; i < t->rank; i++)
        if (!read_integer(json_array_get(shape, (size_t)i), &t->dims[i]))
            return rt_error(err, "tensor %s: size %d is no whole number", t->name, i);
    return true;
}

static bool read_type(const json_t *type, SafeTensor *t, int64_t *bytes, RtError *err)
{
    const char *name = json_string_value(type);
    for (int i = 0; name && i < N_TYPES; i++)
        if (strcmp(name, types[i].name) == 0) {
            t->type_name = types[i].name;
            t->dtype = types[i].dtype;
            *bytes = types[i].bytes;
            return true;
        }
    return rt_error(err, "tensor %s: unknown element type '%s'", t->name, name ? name : "");
}

static bool read_tensor(SafeFile *file, const char *name, const json_t *entry, SafeTensor *t,
                        const unsigned char *data, int64_t size, RtError *err)
{
    *t = (SafeTensor){.name = name};
    int64_t width = 0, elements, want, begin, end;
    if (!json_is_object(entry) || json_object_size(entry) != 3)
        return rt_error(err, "tensor %s: dtype, shape and data_offsets are expected", name);
    if (!read_type(json_object_get(entry, "dtype"), t, &width, err) ||
        !read_shape(json_object_get(entry, "shape"), t, err))
        return false;
    const json_t *offsets = json_object_get(entry, "data_offsets");
    if (json_array_size(offsets) != 2 || !read_integer(json_array_get(offsets, 0), &begin) ||
        !read_integer(json_array_get(offsets, 1), &end) || begin > end || end > size)
        return rt_error(err, "tensor %s: its offsets are outside the %lld bytes of data", name,
                        (long long)size);
    if (!rt_elements(t->rank, t->dims, &elements) || !rt_mul(elements, width, &want) ||
        want != end - begin)
        return rt_error(err, "tensor %s: its shape does not fit its %lld bytes", name,
                        (long long)(end - begin));
    t->data = data + begin;
    t->bytes = end - begin;
    file->n++;
    return true;
}

static int by_offset(const void *a, const void *b)
{
    const SafeTensor *x = a, *y = b;
    const char *p = x->data, *q = y->data;
    if (p != q)
        return p < q ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(SafeTensor *const *)a)->name, (*(SafeTensor *const *)b)->name);
}

/* Every byte of the data belongs to exactly one tensor. */
static bool check_cover(SafeFile *file, const unsigned char *data, int64_t size, RtError *err)
{
    qsort(file->tensor, (size_t)file->n, sizeof *file->tensor, by_offset);
    int64_t at = 0;
    for (int64_t i = 0; i < file->n; i++) {
        const SafeTensor *t = &file->tensor[i];
        int64_t begin = (const unsigned char *)t->data - data;
        if (begin != at)
            return rt_error(err, "tensor %s: its data %s", t->name,
                            begin < at ? "overlaps another tensor's" : "leaves a hole before it");
        at = begin + t->bytes;
    }
    return at == size ||
           rt_error(err, "%lld bytes after the last tensor belong to none", (long long)(size - at));
}

static bool check_metadata(const json_t *metadata, RtError *err)
{
    const char *key;
    json_t *value;
    if (!json_is_object(metadata))
        return rt_error(err, "%s is no object", METADATA);
    json_object_foreach((json_t *)(uintptr_t)metadata, key, value)
    {
        if (!json_is_string(value))
            return rt_error(err, "%s: %s is no string", METADATA, key);
    }
    return true;
}

static bool read_tensors(SafeFile *file, const unsigned char *data, int64_t size, RtError *err)
{
    const char *key;
    json_t *value;
    int64_t most = (int64_t)json_object_size(file->header);
    file->tensor = rt_alloc(most, sizeof *file->tensor, err);
    file->named = rt_alloc(most, sizeof *file->named, err);
    if (!file->tensor || !file->named)
        return false;
    json_object_foreach(file->header, key, value)
    {
        bool metadata = strcmp(key, METADATA) == 0;
        if (metadata ? !check_metadata(value, err)
                     : !read_tensor(file, key, value, &file->tensor[file->n], data, size, err))
            return false;
    }
    if (!check_cover(file, data, size, err))
        return false;
    for (int64_t i = 0; i < file->n; i++)
        file->named[i] = &file->tensor[i];
    qsort(file->named, (size_t)file->n, sizeof *file->named, by_name);
    return true;
}

static bool parse(SafeFile *file, const unsigned char *bytes, int64_t n, RtError *err)
{
    if (n < 8)
        return rt_error(err, "not a safetensors file: %lld bytes", (long long)n);
    uint64_t len;
    memcpy(&len, bytes, sizeof len);
    if (len > (uint64_t)MAX_HEADER || len > (uint64_t)(n - 8))
        return rt_error(err, "not a safetensors file: a header of %llu bytes in a file of %lld",
                        (unsigned long long)len, (long long)n);
    const char *text = (const char *)bytes + 8;
    if (len == 0 || text[0] != '{')
        return rt_error(err, "not a safetensors file: the header does not start with {");
    json_error_t why;
    file->header = json_loadb(text, (size_t)len, JSON_REJECT_DUPLICATES, &why);
    if (!file->header)
        return rt_error(err, "the header is damaged: %s at byte %d", why.text, why.position);
    return read_tensors(file, bytes + 8 + len, n - 8 - (int64_t)len, err);
}

SafeFile *safetensors_parse(const void *data, int64_t bytes, RtError *err)
{
    SafeFile *file = rt_alloc(1, sizeof *file, err);
    if (!file)
        return NULL;
    file->map.mapped = true; /* nothing to free */
    if (parse(file, data, bytes, err))
        return file;
    safetensors_close(file);
    return NULL;
}

/* torch.save writes a zip file, and wrote a pickle before PyTorch 1.6.  Both could be the length of
 * a safetensors header, which then begins at byte 8. */
static bool is_pytorch_file(const FileBytes *map)
{
    return map->bytes > 8 && map->data[8] != '{' &&
           (memcmp(map->data, "PK\3\4", 4) == 0 || (map->data[0] == 0x80 && map->data[1] <= 5));
}

static SafeFile *open_map(const char *path, FileBytes map, RtError *err)
{
    if (is_pytorch_file(&map)) {
        file_release(&map);
        rt_error(err,
                 "%.160s is a file of torch.save; convert it in Python with "
                 "safetensors.torch.save_file(torch.load(\"%.160s\", weights_only=True), "
                 "\"weights.safetensors\")",
                 path, path);
        return NULL;
    }
    SafeFile *file = safetensors_parse(map.data, map.bytes, err);
    if (file) {
        file->map = map;
        return file;
    }
    file_release(&map);
    rt_error_prefix(err, "%s", path);
    return NULL;
}

SafeFile *safetensors_open(const char *path, RtError *err)
{
    FileBytes map;
    return file_map(path, &map, err) ? open_map(path, map, err) : NULL;
}

SafeFile *safetensors_open_exact(const char *path, int64_t bytes, uint32_t crc32, RtError *err)
{
    FileBytes map;
    return file_map_exact(path, bytes, crc32, &map, err) ? open_map(path, map, err) : NULL;
}

void safetensors_close(SafeFile *file)
{
    if (!file)
        return;
    json_decref(file->header);
    free(file->tensor);
    free(file->named);
    file_release(&file->map);
    free(file);
}

int64_t safetensors_count(const SafeFile *file)
{
    return file->n;
}

const SafeTensor *safetensors_at(const SafeFile *file, int64_t i)
{
    return i >= 0 && i < file->n ? &file->tensor[i] : NULL;
}

const SafeTensor *safetensors_find(const SafeFile *file, const char *name)
{
    SafeTensor key = {.name = name}, *pointer = &key;
    SafeTensor *const *found =
        file->n ? bsearch(&pointer, file->named, (size_t)file->n, sizeof pointer, by_name) : NULL;
    return found ? *found : NULL;
}

void safetensors_forget(const SafeFile *file, const SafeTensor *t)
{
    int64_t page = sysconf(_SC_PAGESIZE);
    int64_t first = (const unsigned char *)t->data - file->map.data, end = first + t->bytes;
    int64_t from = (first + page - 1) / page * page, to = end / page * page;
    if (file->map.bytes && to > from)
        madvise((void *)(uintptr_t)(file->map.data + from), (size_t)(to - from), MADV_DONTNEED);
}

const char *safetensors_metadata(const SafeFile *file, const char *key)
{
    return json_string_value(json_object_get(json_object_get(file->header, METADATA), key));
}

/* ---- conversion ---- */

static float float_at(const SafeTensor *t, int64_t i)
{
    const char *p = t->data;
    uint16_t half;
    double wide;
    if (t->dtype == RT_F64) {
        memcpy(&wide, p + i * 8, 8);
        return (float)wide;
    }
    memcpy(&half, p + i * 2, 2);
    return t->dtype == RT_F16 ? rt_f16_to_f32(half) : rt_bf16_to_f32(half);
}

static bool copy_i64_to_i32(const SafeTensor *t, int32_t *dst, RtError *err)
{
    for (int64_t i = 0; i < t->bytes / 8; i++) {
        int64_t v;
        memcpy(&v, (const char *)t->data + i * 8, 8);
        if (v != (int32_t)v)
            return rt_error(err, "tensor %s: element %lld is %lld, which does not fit 32 bits",
                            t->name, (long long)i, (long long)v);
        dst[i] = (int32_t)v;
    }
    return true;
}

static bool bools_valid(const SafeTensor *t, RtError *err)
{
    for (int64_t i = 0; i < t->bytes; i++)
        if (((const unsigned char *)t->data)[i] > 1)
            return rt_error(err, "tensor %s: element %lld is neither true nor false", t->name,
                            (long long)i);
    return true;
}

bool safetensors_copy(const SafeTensor *t, RtDType dtype, void *dst, RtError *err)
{
    if (t->dtype == dtype && dtype != RT_OTHER) {
        if (dtype == RT_BOOL && !bools_valid(t, err))
            return false;
        if (t->bytes)
            memcpy(dst, t->data, (size_t)t->bytes);
        return true;
    }
    if (dtype == RT_F32 && (t->dtype == RT_F16 || t->dtype == RT_BF16 || t->dtype == RT_F64)) {
        int64_t n = t->bytes / rt_dtype_bytes(t->dtype);
        for (int64_t i = 0; i < n; i++)
            ((float *)dst)[i] = float_at(t, i);
        return true;
    }
    if (dtype == RT_I32 && t->dtype == RT_I64)
        return copy_i64_to_i32(t, dst, err);
    return rt_error(err, "tensor %s has type %s, which is not converted to %s", t->name,
                    t->type_name, rt_dtype_name(dtype));
}

/* ---- writing ---- */

static const char *type_name(RtDType dtype)
{
    for (int i = 0; i < N_TYPES; i++)
        if (types[i].dtype == dtype && dtype != RT_OTHER)
            return types[i].name;
    return NULL;
}

static int by_size_and_name(const void *a, const void *b)
{
    const SafeEntry *x = *(const SafeEntry *const *)a, *y = *(const SafeEntry *const *)b;
    int64_t p = rt_dtype_bytes(x->dtype), q = rt_dtype_bytes(y->dtype);
    if (p != q)
        return p > q ? -1 : 1;
    return strcmp(x->name, y->name);
}

static bool entry_bytes(const SafeEntry *e, int64_t *bytes, RtError *err)
{
    int64_t elements;
    bool ok = type_name(e->dtype) && e->rank >= 0 && e->rank <= RT_MAX_RANK &&
              rt_elements(e->rank, e->dims, &elements) &&
              rt_mul(elements, rt_dtype_bytes(e->dtype), bytes);
    return ok || rt_error(err, "tensor %s cannot be written: its type or shape", e->name);
}

static json_t *describe(const SafeEntry *e, int64_t begin, int64_t end)
{
    json_t *shape = json_array();
    for (int i = 0; i < e->rank; i++)
        if (json_array_append_new(shape, json_integer(e->dims[i])) != 0) {
            json_decref(shape);
            return NULL;
        }
    return json_pack("{s:s, s:o, s:[I,I]}", "dtype", type_name(e->dtype), "shape", shape,
                     "data_offsets", (json_int_t)begin, (json_int_t)end);
}

static bool describe_metadata(json_t *root, const SafeMeta *meta, int n)
{
    json_t *object = json_object();
    bool ok = object != NULL;
    for (int i = 0; ok && i < n; i++)
        ok = json_object_set_new(object, meta[i].key, json_string(meta[i].value)) == 0;
    return json_object_set_new(root, METADATA, object) == 0 && ok;
}

/* The header text, padded with spaces so that the data starts at a multiple of 8. */
static char *header_text(const SafeEntry *const *entry, int64_t n, const SafeMeta *meta, int n_meta,
                         RtError *err)
{
    json_t *root = json_object();
    bool ok = root && (n_meta == 0 || describe_metadata(root, meta, n_meta));
    if (!ok)
        rt_error(err, "out of memory, or metadata that is not UTF-8");
    int64_t at = 0, bytes;
    for (int64_t i = 0; ok && i < n; i++) {
        const char *name = entry[i]->name;
        ok = entry_bytes(entry[i], &bytes, err);
        if (ok && (strcmp(name, METADATA) == 0 || json_object_get(root, name)))
            ok = rt_error(err, "two tensors are called %s", name);
        if (ok && json_object_set_new(root, name, describe(entry[i], at, at + bytes)) != 0)
            ok = rt_error(err, "tensor %s: out of memory, or a name that is not UTF-8", name);
        ok = ok && (rt_add(at, bytes, &at) || rt_error(err, "the tensors are too large"));
    }
    char *text = ok ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    if (!text)
        return ok ? (rt_error(err, "out of memory for the header"), NULL) : NULL;
    size_t len = strlen(text), padded = (len + 7) / 8 * 8;
    char *out = rt_alloc((int64_t)padded + 1, 1, err);
    if (out) {
        memset(out, ' ', padded);
        memcpy(out, text, len);
    }
    free(text);
    return out;
}

static bool write_tensors(AtomicFile *file, const char *header, const SafeEntry *const *entry,
                          int64_t n, RtError *err)
{
    uint64_t len = strlen(header);
    if (!atomic_write(file, &len, sizeof len, err) ||
        !atomic_write(file, header, (int64_t)len, err))
        return false;
    for (int64_t i = 0; i < n; i++) {
        int64_t bytes = 0;
        if (!entry_bytes(entry[i], &bytes, err) || !atomic_write(file, entry[i]->data, bytes, err))
            return false;
    }
    return true;
}

bool safetensors_write(const char *path, const SafeContent *content, int64_t *bytes,
                       uint32_t *crc32, RtError *err)
{
    int64_t n = content->n;
    const SafeEntry **sorted = rt_alloc(n, sizeof *sorted, err);
    if (!sorted)
        return false;
    for (int64_t i = 0; i < n; i++)
        sorted[i] = &content->entries[i];
    qsort(sorted, (size_t)n, sizeof *sorted, by_size_and_name);
    char *header = header_text(sorted, n, content->meta, content->n_meta, err);
    AtomicFile file = {.fd = -1};
    bool ok = header && atomic_open(&file, path, err);
    if (ok && !write_tensors(&file, header, sorted, n, err)) {
        atomic_abort(&file);
        ok = false;
    }
    if (ok && bytes)
        *bytes = file.bytes;
    if (ok && crc32)
        *crc32 = file.crc32;
    ok = ok && atomic_commit(&file, err);
    free(header);
    free(sorted);
    return ok;
}
