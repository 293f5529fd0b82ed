/* SPDX-License-Identifier: GPL-3.0-or-later */
/* imagefolder(DIR): JPEG and PNG pictures, a folder for each class, cut and scaled to one size.
 * DIR/train and DIR/val (or DIR/test) are the parts to train on and to hold out, if there are both;
 * else DIR itself has the classes. */
#include "runtime/cores.h"
#include "runtime/picture_folder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* At most so many files are opened at the start: about a second when their folders are in memory.
 */
enum { HEADERS_CHECKED = 50000 };

static void reader_done(void *scratch)
{
    picture_reader_free(scratch);
}

/* ---- opening ---- */

/* The first of the folders DIR/name that is there, allocated; NULL (with a message only when out of
 * memory: *ok is false then). */
static char *part_folder(const char *dir, const char *const *names, bool *ok, RtError *err)
{
    for (; *names; names++) {
        char *path = path_join(dir, *names, err);
        *ok = path != NULL;
        if (!path || folder_exists(path))
            return path;
        free(path);
    }
    return NULL;
}

/* Classes that have no picture to hold out: their accuracy is in no evaluation. */
static bool warn_of_missing(Dataset *ds, int64_t first, const char *dir, RtError *err)
{
    const PictureFolder *f = ds->state;
    int64_t missing = 0, at = 0;
    bool *seen = rt_alloc(f->list.n_classes, sizeof *seen, err);
    if (!seen)
        return false;
    for (int64_t i = first; i < f->list.n; i++)
        seen[f->list.label[i]] = true;
    for (int64_t c = f->list.n_classes - 1; c >= 0; c--)
        if (!seen[c]) {
            missing++;
            at = c;
        }
    free(seen);
    if (missing)
        snprintf(ds->warning, sizeof ds->warning,
                 "%.120s has no picture of %lld of the %lld classes, the first of them '%.60s'",
                 dir, (long long)missing, (long long)f->list.n_classes, f->list.classes[at]);
    return true;
}

static bool list_parts(Dataset *ds, const char *train, const char *held_out, RtError *err)
{
    PictureFolder *f = ds->state;
    if (!pictures_add(&f->list, train, err))
        return false;
    int64_t n = f->list.n;
    if (!pictures_add(&f->list, held_out, err))
        return false;
    ds->test = f->list.n - n;
    return warn_of_missing(ds, n, held_out, err);
}

/* A class may be called train; a folder of nothing else is a part without its counterpart, and all
 * of its pictures would be of one class. */
static bool list_classes(PictureFolder *f, const char *dir, RtError *err)
{
    if (!pictures_add(&f->list, dir, err))
        return false;
    const char *first = f->list.classes[0];
    if (f->list.n_classes == 1 &&
        (strcmp(first, "train") == 0 || strcmp(first, "val") == 0 || strcmp(first, "test") == 0))
        return rt_error(err,
                        "%s: there is only %s; have both train and val (or test), or give the path "
                        "of the folder that has the classes",
                        dir, first);
    return pictures_mix(&f->list, dir, err);
}

static bool list_pictures(Dataset *ds, RtError *err)
{
    static const char *const train_names[] = {"train", NULL};
    static const char *const held_out_names[] = {"val", "test", NULL};
    PictureFolder *f = ds->state;
    const char *dir = ds->spec.path ? ds->spec.path : "";
    bool ok = true;
    f->root_bytes = strlen(dir) + 1;
    f->list.root = dir;
    f->list.also = ds->spec.left_out;
    f->list.n_also = ds->spec.n_left_out;
    char *train = part_folder(dir, train_names, &ok, err);
    char *held_out = ok ? part_folder(dir, held_out_names, &ok, err) : NULL;
    if (ok && train && held_out)
        ok = list_parts(ds, train, held_out, err);
    else if (ok)
        ok = list_classes(f, dir, err);
    free(train);
    free(held_out);
    ds->total = f->list.n;
    return ok;
}

const char *picture_name(const PictureFolder *f, int64_t i)
{
    return picture_path(&f->list, i) + f->root_bytes;
}

static void know_one(void *user, int64_t i)
{
    left_out_know(user, i);
}

/* Pictures that this run has found damaged before: they have numbers, and stay left out. */
static bool know_left_out(PictureFolder *f, RtError *err)
{
    const PictureList *list = &f->list;
    return left_out_open(&f->left_out, list->n, list->n_also, err) &&
           pictures_each_also(list, know_one, &f->left_out, err);
}

/* What is no picture, or too large, is found before training and not hours later; of many, a
 * sample. */
static bool look_at_files(PictureFolder *f, PictureNeeds *needs, RtError *err)
{
    int64_t stride = 1 + f->list.n / HEADERS_CHECKED, bad = 0, first = 0, looked = 0;
    RtError why = {{0}};
    for (int64_t i = 0; i < f->list.n; i += stride) {
        ImageFacts facts;
        RtError here = {{0}};
        looked++;
        if (f->left_out.is[i])
            continue;
        if (image_look(picture_path(&f->list, i), &facts, &here)) {
            picture_needs_add(needs, &facts, f->ds->spec.size);
            continue;
        }
        if (bad++ == 0) {
            first = i;
            why = here;
        }
        left_out_find(&f->left_out, i, here.message);
    }
    return bad <= f->left_out.limit ||
           rt_error(err,
                    "%s: %s; %lld of %lld files looked at are no pictures that can be read, and "
                    "at most %lld are left out",
                    picture_path(&f->list, first), why.message, (long long)bad, (long long)looked,
                    (long long)f->left_out.limit);
}

static bool check_sizes(const DataSpec *spec, RtError *err)
{
    if (spec->size < 1 || spec->size > 16384)
        return rt_error(err, "size = %lld: give a number of pixels from 1 to 16384",
                        (long long)spec->size);
    if (spec->resize < spec->size || spec->resize > 65536)
        return rt_error(err, "resize = %lld: the shorter side has from size = %lld to 65536 pixels",
                        (long long)spec->resize, (long long)spec->size);
    for (int c = 0; c < 3; c++)
        if (!isfinite((float)(spec->mean[c] / spec->std[c])) ||
            !isfinite((float)(1 / (255 * spec->std[c]))))
            return rt_error(err, "mean and std: 1 / std and mean / std have to be finite in f32");
    return true;
}

static bool start_readers(PictureFolder *f, const PictureNeeds *needs, RtError *err)
{
    int n = picture_readers_affordable(needs, cores_allowed(), err);
    PictureReader **reader = n ? rt_alloc(n, sizeof(PictureReader *), err) : NULL;
    f->loader = reader
                    ? loader_new(n, sizeof(PictureReader), picture_place_fill, reader_done, f, err)
                    : NULL;
    for (int i = 0; f->loader && i < n; i++)
        reader[i] = loader_scratch(f->loader, i);
    bool ok = f->loader && picture_readers_reserve(reader, n, needs, err);
    free(reader);
    f->memory = n * (picture_needs_bytes(needs) - needs->library_bytes);
    return ok;
}

static bool make_room(Dataset *ds, const PictureNeeds *needs, RtError *err)
{
    PictureFolder *f = ds->state;
    int64_t floats, bytes, batch = ds->spec.batch;
    if (!rt_mul(batch, 3 * ds->spec.size * ds->spec.size, &floats) ||
        !rt_mul(floats, (int64_t)sizeof(float), &bytes))
        return rt_error(err, "a batch of %lld pictures does not fit the address space",
                        (long long)batch);
    f->images = rt_alloc(floats, sizeof(float), err);
    f->place = f->images ? rt_alloc(batch, sizeof *f->place, err) : NULL;
    if (!f->place || !start_readers(f, needs, err))
        return false;
    ds->loaded_bytes = pictures_bytes(&f->list) + bytes + f->memory;
    return true;
}

static bool folder_open(Dataset *ds, RtError *err)
{
    PictureFolder *f = ds->state = rt_alloc(1, sizeof *f, err);
    PictureNeeds needs = {0};
    if (!f)
        return false;
    f->ds = ds;
    if (!check_sizes(&ds->spec, err) || !list_pictures(ds, err) || !know_left_out(f, err) ||
        !look_at_files(f, &needs, err))
        return false;
    data_add_field(ds, "image", RT_F32, 3, (int64_t[]){3, ds->spec.size, ds->spec.size});
    DataField *label = data_add_field(ds, "label", RT_I32, 0, NULL);
    label->label = true;
    label->min_id = 0;
    label->max_id = f->list.n_classes - 1;
    return make_room(ds, &needs, err);
}

static void folder_close(Dataset *ds)
{
    PictureFolder *f = ds->state;
    if (!f)
        return;
    loader_free(f->loader);
    left_out_close(&f->left_out);
    pictures_free(&f->list);
    free(f->images);
    free(f->place);
    free(f);
}

static LeftOutList *folder_left_out(const Dataset *ds)
{
    PictureFolder *f = ds->state;
    return &f->left_out;
}

static const char *folder_name(const Dataset *ds, int64_t i)
{
    return picture_name(ds->state, i);
}

const DataKind data_imagefolder = {.name = "imagefolder",
                                   .traits.file_per_example = true,
                                   .traits.counted = "images",
                                   .open = folder_open,
                                   .close = folder_close,
                                   .batch = picture_batch,
                                   .left_out = folder_left_out,
                                   .example_name = folder_name};
