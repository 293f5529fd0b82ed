/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/examples.h"

#include "runtime/data_internal.h"
#include "runtime/folder_list.h"
#include "runtime/image.h"
#include "runtime/npy.h"

#include <stdlib.h>
#include <string.h>

/* What the examples of several fields are of. */
typedef struct SharedTable {
    Dataset *rows;
    int users;
} SharedTable;

struct Examples {
    bool (*read)(Examples *x, int64_t i, void *dst, RtError *err);
    int64_t n;
    DataField field;
    FileBytes file;
    ArrayFile *arrays;
    NpyArray array;
    PathList files;
    PictureForm form;
    float *pixels; /* of what becomes bytes */
    Image image;
    ImageScratch scratch;
    SoundForm sound;
    SoundRoom room;
    int32_t *token;
    int64_t n_tokens;
    SharedTable *table;
    int table_field;
};

static Examples *examples_new(RtError *err)
{
    Examples *x = rt_alloc(1, sizeof(Examples), err);
    if (x)
        x->field.min_id = x->field.max_id = -1;
    return x;
}

static void table_release(SharedTable *table)
{
    if (!table || --table->users > 0)
        return;
    dataset_close(table->rows);
    free(table);
}

void examples_close(Examples *x)
{
    if (!x)
        return;
    table_release(x->table);
    file_release(&x->file);
    array_file_close(x->arrays);
    paths_free(&x->files);
    free(x->pixels);
    image_free(&x->image);
    image_scratch_free(&x->scratch);
    sound_room_free(&x->room);
    free(x->token);
    free(x);
}

/* x itself, or NULL where something has failed. */
static Examples *opened(Examples *x, bool ok)
{
    if (ok)
        return x;
    examples_close(x);
    return NULL;
}

int64_t examples_count(const Examples *x)
{
    return x->n;
}

const DataField *examples_field(const Examples *x)
{
    return &x->field;
}

const char *examples_file(const Examples *x, int64_t i)
{
    return i < x->files.n ? x->files.path[i] : NULL;
}

bool examples_read(Examples *x, int64_t i, void *dst, RtError *err)
{
    return x->read(x, i, dst, err);
}

/* ---- arrays ---- */

static bool read_row(Examples *x, int64_t i, void *dst, RtError *err)
{
    int64_t n;
    if (!rt_elements(x->field.rank, x->field.dim, &n))
        return rt_error(err, "too large");
    npy_copy(&x->array, i * n, n, x->field.dtype, dst);
    return true;
}

static bool look_at_array(Examples *x, RtError *err)
{
    const NpyArray *a = &x->array;
    DataField *f = &x->field;
    if (a->rank < 1)
        return rt_error(err, "a single number; the first axis counts examples");
    x->n = a->dims[0];
    f->dtype = npy_type_dtype(a->type);
    f->rank = a->rank - 1;
    memcpy(f->dim, a->dims + 1, (size_t)f->rank * sizeof *f->dim);
    return npy_is_float(a->type) || npy_range(a, NULL, &f->min_id, &f->max_id, err);
}

Examples *examples_of_array(const char *path, RtError *err)
{
    Examples *x = examples_new(err);
    if (!x)
        return NULL;
    x->read = read_row;
    bool ok = file_map(path, &x->file, err) &&
              ((npy_parse(x->file.data, x->file.bytes, &x->array, err) && look_at_array(x, err)) ||
               rt_error_prefix(err, "%s", path));
    return opened(x, ok);
}

Examples *examples_of_named(const char *path, ArrayFormat format, const char *name, RtError *err)
{
    Examples *x = examples_new(err);
    if (!x)
        return NULL;
    x->read = read_row;
    x->arrays = array_file_open(path, format, err);
    bool ok = x->arrays && array_file_find(x->arrays, name, &x->array, err) &&
              (look_at_array(x, err) || rt_error_prefix(err, "%s: %s", path, name));
    return opened(x, ok);
}

/* ---- pictures ---- */

static bool read_picture(Examples *x, int64_t i, void *dst, RtError *err)
{
    const PictureForm *form = &x->form;
    FileBytes file = {0};
    bool ok = file_read(x->files.path[i], IMAGE_MAX_FILE_BYTES, &file, err) &&
              (image_decode(file.data, file.bytes, &x->image, err) ||
               rt_error_prefix(err, "%s", x->files.path[i]));
    file_release(&file);
    if (!ok)
        return false;
    ImageWindow window = image_center(&x->image, form->size, form->resize);
    return image_sample(&x->image, &window, form->size, form->mean, form->std, &x->scratch, dst,
                        err);
}

/* Of what path names, the files with these endings: those of a folder, or a file. */
static bool list_files(Examples *x, const char *path, const char *const *endings,
                       const char *ending_text, RtError *err)
{
    PathList *list = &x->files;
    int64_t kept = 0;
    if (!paths_expand(path, NULL, list, err))
        return false;
    for (int64_t i = 0; i < list->n; i++) {
        if (folder_list_wants(endings, path_base(list->path[i])))
            list->path[kept++] = list->path[i];
        else
            free(list->path[i]);
    }
    x->n = list->n = kept;
    return kept > 0 || rt_error(err, "%s: no %s file", path, ending_text);
}

/* Pictures below path, of these dims. */
static Examples *open_pictures(const char *path, const PictureForm *form, DataField field,
                               RtError *err)
{
    static const char *const endings[] = {".jpg", ".jpeg", ".png", NULL};
    Examples *x = examples_new(err);
    if (!x)
        return NULL;
    x->read = read_picture;
    x->form = *form;
    x->field = field;
    x->field.min_id = x->field.max_id = -1;
    return opened(x, list_files(x, path, endings, ".jpg, .jpeg or .png", err));
}

Examples *examples_of_pictures(const char *path, const PictureForm *form, RtError *err)
{
    DataField field = {.dtype = RT_F32, .rank = 3, .dim = {3, form->size, form->size}};
    return open_pictures(path, form, field, err);
}

/* Numbers from 0 to 1 as bytes. */
static bool read_bytes(Examples *x, int64_t i, void *dst, RtError *err)
{
    int64_t n = x->form.size * x->form.size;
    const float *p = x->pixels;
    unsigned char *byte = dst;
    if (!read_picture(x, i, x->pixels, err))
        return false;
    for (int64_t k = 0; x->field.rank == 3 && k < 3 * n; k++)
        byte[k] = (unsigned char)(255 * p[k] + 0.5F);
    for (int64_t k = 0; x->field.rank == 2 && k < n; k++) /* ITU-R BT.601, as Pillow's L */
        byte[k] =
            (unsigned char)(255 * (0.299F * p[k] + 0.587F * p[k + n] + 0.114F * p[k + 2 * n]) +
                            0.5F);
    return true;
}

Examples *examples_of_byte_pictures(const char *path, int64_t size, bool grey, RtError *err)
{
    PictureForm form = {.size = size, .resize = size, .std = {1, 1, 1}};
    DataField field = {.dtype = RT_U8, .rank = 3, .dim = {3, size, size}};
    if (grey)
        field = (DataField){.dtype = RT_U8, .rank = 2, .dim = {size, size}};
    Examples *x = open_pictures(path, &form, field, err);
    if (!x)
        return NULL;
    x->read = read_bytes;
    x->pixels = rt_alloc(3 * size * size, sizeof *x->pixels, err);
    return opened(x, x->pixels != NULL);
}

/* ---- sounds ---- */

static bool read_sound(Examples *x, int64_t i, void *dst, RtError *err)
{
    bool damaged;
    const char *path = x->files.path[i];
    return sound_read(&x->room, path, &x->sound, 0.5, dst, &damaged, err) ||
           rt_error_prefix(err, "%s", path);
}

Examples *examples_of_sounds(const char *path, const SoundForm *form, RtError *err)
{
    Examples *x = examples_new(err);
    if (!x)
        return NULL;
    x->read = read_sound;
    x->sound = *form;
    x->field.dtype = RT_F32;
    x->field.rank = 2;
    x->field.dim[0] = 1;
    x->field.dim[1] = form->length;
    return opened(x, list_files(x, path, sound_endings, SOUND_ENDINGS, err));
}

/* ---- tables ---- */

static bool read_table_row(Examples *x, int64_t i, void *dst, RtError *err)
{
    const Dataset *ds = x->table->rows;
    (void)err;
    ds->kind->example(ds, i, x->table_field, dst);
    return true;
}

static Examples *of_table_field(SharedTable *table, int f, RtError *err)
{
    Examples *x = examples_new(err);
    if (!x)
        return NULL;
    x->read = read_table_row;
    x->n = table->rows->total;
    x->field = table->rows->field[f];
    x->table = table;
    x->table_field = f;
    table->users++;
    return x;
}

/* The caller's own use of the table ends here. */
static int table_fields(SharedTable *table, Examples *out[DATA_MAX_FIELDS], RtError *err)
{
    int n = 0;
    while (n < table->rows->n_fields && (out[n] = of_table_field(table, n, err)))
        n++;
    bool ok = n == table->rows->n_fields;
    while (!ok && n > 0)
        examples_close(out[--n]);
    table_release(table);
    return n;
}

int examples_of_table(const DataSpec *spec, Examples *out[DATA_MAX_FIELDS], RtError *err)
{
    DataSpec rows = *spec;
    rows.kind = "csv";
    rows.batch = 1;
    rows.in_order = rows.every_row = true;
    SharedTable *table = rt_alloc(1, sizeof *table, err);
    if (!table)
        return 0;
    table->users = 1;
    table->rows = dataset_open(&rows, err);
    if (table->rows)
        return table_fields(table, out, err);
    free(table);
    return 0;
}

/* ---- text ---- */

static bool read_window(Examples *x, int64_t i, void *dst, RtError *err)
{
    (void)err;
    int64_t length = x->field.dim[0], first = i * length, there = x->n_tokens - first;
    there = there < length ? there : length;
    memset(dst, 0, (size_t)length * sizeof *x->token);
    memcpy(dst, x->token + first, (size_t)there * sizeof *x->token);
    return true;
}

static bool encode(Examples *x, const Vocab *vocab, RtError *err)
{
    x->token = rt_alloc(x->file.bytes, sizeof *x->token, err);
    if (!x->token)
        return false;
    x->n_tokens = vocab_encode(vocab, (const char *)x->file.data, x->file.bytes, x->token,
                               x->file.bytes, err);
    return x->n_tokens > 0 || (x->n_tokens == 0 && rt_error(err, "an empty text"));
}

Examples *examples_of_text(const char *path, const Vocab *vocab, int64_t length, RtError *err)
{
    Examples *x = examples_new(err);
    if (!x)
        return NULL;
    x->read = read_window;
    x->field.dtype = RT_I32;
    x->field.rank = 1;
    x->field.dim[0] = length;
    if (!file_read(path, DATA_MAX_BYTES, &x->file, err))
        return opened(x, false);
    if (!encode(x, vocab, err))
        return opened(x, rt_error_prefix(err, "%s", path));
    x->n = x->n_tokens / length + (x->n_tokens % length > 0);
    x->field.min_id = 0;
    x->field.max_id = vocab->size - 1;
    return x;
}
