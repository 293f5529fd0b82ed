/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Arrays: in files of their own, or named in one file. */
#include "runtime/array_file.h"
#include "runtime/data_internal.h"
#include "runtime/safetensors.h"
#include "runtime/standin_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

enum { MOST_ARRAY_BYTES = 64 << 20 };

/* ---- what they hold ---- */

static void npy_header(MadeBytes *b, const DataField *f, int64_t examples)
{
    static const char *const descr[RT_DTYPE_COUNT] = {
        [RT_F32] = "<f4", [RT_I32] = "<i4", [RT_U8] = "|u1"};
    char text[256];
    int n = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%lld,",
                     descr[f->dtype], (long long)examples);
    for (int i = 0; i < f->rank; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, " %lld,", (long long)f->dim[i]);
    n += snprintf(text + n, sizeof text - (size_t)n, "), }");
    n += snprintf(text + n, sizeof text - (size_t)n, "%*s\n", 63 - (10 + n) % 64, "");
    unsigned char begin[10] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)n, (unsigned char)(n >> 8)};
    made_add(b, begin, sizeof begin);
    made_add(b, text, n);
}

/* One field of all examples, behind what `b` has already. */
static bool add_elements(Dataset *made, int f, MadeBytes *b, RtError *err)
{
    int64_t counted;
    void *dst[DATA_MAX_FIELDS] = {0};
    dst[f] = rt_alloc(made->field_bytes[f] + 1, 1, err);
    bool ok = dst[f] != NULL;
    for (int64_t i = 0; ok && i < dataset_held_out_size(made); i++) {
        ok = dataset_eval_batch(made, i, dst, &counted, err);
        made_add(b, dst[f], made->field_bytes[f]);
    }
    free(dst[f]);
    return ok && (!b->failed || rt_error(err, "out of memory"));
}

/* Examples enough for a few batches, in at most so many bytes. */
static int64_t array_examples(const DataSpec *spec)
{
    int64_t bytes = 1, most, n = 8 * spec->batch > 512 ? 8 * spec->batch : 512;
    for (int f = 0; f < spec->n_fields; f++) {
        int64_t elements;
        if (rt_elements(spec->field[f].rank, spec->field[f].dim, &elements))
            bytes += 4 * elements;
    }
    most = MOST_ARRAY_BYTES / bytes;
    n = n > most ? most : n;
    return n < 2 * spec->batch ? 2 * spec->batch : n;
}

/* Whether the source has the field, of those that the batch has. */
static bool is_listed(const DataSpec *spec, const char *field)
{
    ArrayName name;
    bool found = !spec->columns || !*spec->columns;
    for (const char *at = spec->columns; array_name_next(&at, &name);)
        found = found || strcmp(name.field, field) == 0;
    return found;
}

static Dataset *make_up(const DataSpec *spec, StandIn *out, RtError *err)
{
    DataSpec made_up = *spec;
    made_up.kind = "synthetic";
    made_up.columns = NULL;
    made_up.held_path = NULL;
    made_up.examples = array_examples(spec);
    made_up.batch = made_up.held_out_is_part = 1;
    made_up.held_out = 1;
    made_up.seed = 0;
    snprintf(out->said, sizeof out->said, "%lld made-up examples", (long long)made_up.examples);
    return dataset_open(&made_up, err);
}

/* ---- npy ---- */

/* The file of a field among those that the model names, allocated; NULL: it names a folder. */
static char *array_path(const DataSpec *spec, const char *name, RtError *err)
{
    char file[80];
    snprintf(file, sizeof file, "%s.npy", name);
    for (const char *p = spec->path; *p;) {
        size_t n = strcspn(p, "\n"), k = strlen(file);
        if (n >= k && strncmp(p + n - k, file, k) == 0 && (n == k || p[n - k - 1] == '/')) {
            char *path = rt_alloc((int64_t)n + 1, 1, err);
            return path ? memcpy(path, p, n) : NULL;
        }
        p += n + (p[n] == '\n');
    }
    if (!strchr(spec->path, '\n') && !strstr(spec->path, ".npy"))
        return path_join(spec->path, file, err);
    rt_error(err, "none of the files is %s", file);
    return NULL;
}

static bool write_array(Dataset *made, int f, const char *path, RtError *err)
{
    MadeBytes b = {0};
    npy_header(&b, dataset_field(made, f), dataset_held_out_size(made));
    if (add_elements(made, f, &b, err))
        return made_write(&b, path, err);
    free(b.data);
    return false;
}

bool standin_npy(const DataSpec *spec, StandIn *out, RtError *err)
{
    Dataset *made = make_up(spec, out, err);
    bool ok = made != NULL;
    for (int f = 0; ok && f < dataset_n_fields(made); f++) {
        if (!is_listed(spec, dataset_field(made, f)->name))
            continue;
        char *path = array_path(spec, dataset_field(made, f)->name, err);
        ok = path && write_array(made, f, path, err);
        free(path);
    }
    dataset_close(made);
    return ok;
}

/* ---- npz and safetensors ---- */

typedef struct MadeArrays {
    Dataset *made;
    int n;
    const DataField *field[DATA_MAX_FIELDS];
    char name[DATA_MAX_FIELDS][ARRAY_MAX_NAME + 1];
    MadeBytes bytes[DATA_MAX_FIELDS];
} MadeArrays;

static bool make_arrays(const DataSpec *spec, bool headers, MadeArrays *a, StandIn *out,
                        RtError *err)
{
    a->made = make_up(spec, out, err);
    bool ok = a->made != NULL;
    for (int f = 0; ok && f < dataset_n_fields(a->made); f++) {
        const DataField *field = dataset_field(a->made, f);
        if (!is_listed(spec, field->name))
            continue;
        int k = a->n++;
        a->field[k] = field;
        array_name_of(spec->columns, field->name, a->name[k]);
        if (headers)
            npy_header(&a->bytes[k], field, dataset_held_out_size(a->made));
        ok = add_elements(a->made, f, &a->bytes[k], err);
    }
    return ok;
}

static void free_arrays(MadeArrays *a)
{
    for (int k = 0; k < a->n; k++)
        free(a->bytes[k].data);
    dataset_close(a->made);
}

/* Adds an entry as numpy.savez does it: not packed, of the first day that zip can name. */
static bool add_entry(zip_t *zip, const char *name, const MadeBytes *b)
{
    enum { FIRST_DAY = 1 << 5 | 1 };
    char file[256];
    snprintf(file, sizeof file, "%s.npy", name);
    zip_source_t *from = zip_source_buffer(zip, b->data, (zip_uint64_t)b->n, 0);
    zip_int64_t i = from ? zip_file_add(zip, file, from, ZIP_FL_ENC_UTF_8) : -1;
    if (from && i < 0)
        zip_source_free(from);
    return i >= 0 && zip_set_file_compression(zip, (zip_uint64_t)i, ZIP_CM_STORE, 0) == 0 &&
           zip_file_set_dostime(zip, (zip_uint64_t)i, 0, FIRST_DAY, 0) == 0;
}

/* The finished archive of a source. */
static bool take_archive(zip_source_t *from, MadeBytes *out)
{
    char part[1 << 14];
    zip_int64_t n;
    if (zip_source_open(from) != 0)
        return false;
    while ((n = zip_source_read(from, part, sizeof part)) > 0)
        made_add(out, part, n);
    zip_source_close(from);
    return n == 0;
}

static bool archive(const MadeArrays *a, MadeBytes *out, RtError *err)
{
    zip_source_t *to = zip_source_buffer_create(NULL, 0, 0, NULL);
    zip_t *zip = to ? zip_open_from_source(to, ZIP_TRUNCATE, NULL) : NULL;
    bool ok = zip != NULL;
    if (zip)
        zip_source_keep(to);
    for (int f = 0; ok && f < a->n; f++)
        ok = add_entry(zip, a->name[f], &a->bytes[f]);
    if (zip && (!ok || zip_close(zip) != 0)) {
        zip_discard(zip);
        ok = false;
    }
    ok = ok && take_archive(to, out);
    if (to)
        zip_source_free(to);
    return ok || rt_error(err, "the archive cannot be made");
}

bool standin_npz(const DataSpec *spec, StandIn *out, RtError *err)
{
    MadeArrays a = {0};
    MadeBytes b = {0};
    bool ok = make_arrays(spec, true, &a, out, err) && archive(&a, &b, err);
    free_arrays(&a);
    if (ok)
        return made_write(&b, spec->path, err);
    free(b.data);
    return false;
}

bool standin_safetensors(const DataSpec *spec, StandIn *out, RtError *err)
{
    MadeArrays a = {0};
    SafeEntry entry[DATA_MAX_FIELDS];
    bool ok = made_place(spec->path, err) && make_arrays(spec, false, &a, out, err);
    for (int f = 0; ok && f < a.n; f++) {
        const DataField *field = a.field[f];
        entry[f] = (SafeEntry){.name = a.name[f],
                               .dtype = field->dtype,
                               .rank = field->rank + 1,
                               .dims = {dataset_held_out_size(a.made)},
                               .data = a.bytes[f].data};
        memcpy(entry[f].dims + 1, field->dim, (size_t)field->rank * sizeof *field->dim);
    }
    SafeContent content = {.entries = entry, .n = a.n};
    ok = ok && safetensors_write(spec->path, &content, NULL, NULL, err);
    free_arrays(&a);
    return ok;
}
