/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/folder.h"
#include "runtime/categories.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* At most so many files are opened at the start: about a second when their folders are in memory.
 */
enum { FILES_LOOKED_AT = 50000 };

/* ---- parts ---- */

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

/* Classes that have no file to hold out: their accuracy is in no evaluation. */
static bool warn_of_missing(Dataset *ds, int64_t first, const char *dir, RtError *err)
{
    const Folder *f = ds->state;
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
                 "%.120s has no %s of %lld of the %lld classes, the first of them '%.60s'", dir,
                 f->form->one, (long long)missing, (long long)f->list.n_classes,
                 f->list.classes[at]);
    return true;
}

static bool list_parts(Dataset *ds, const char *train, const char *held_out, RtError *err)
{
    Folder *f = ds->state;
    if (!folder_list_add(&f->list, train, err))
        return false;
    int64_t n = f->list.n;
    if (!folder_list_add(&f->list, held_out, err))
        return false;
    ds->test = f->list.n - n;
    return warn_of_missing(ds, n, held_out, err);
}

/* A class may be called train; a folder of nothing else is a part without its counterpart, and all
 * of its files would be of one class. */
static bool list_classes(Folder *f, const char *dir, RtError *err)
{
    if (!folder_list_add(&f->list, dir, err))
        return false;
    const char *first = f->list.classes[0];
    if (f->list.n_classes == 1 &&
        (strcmp(first, "train") == 0 || strcmp(first, "val") == 0 || strcmp(first, "test") == 0))
        return rt_error(err,
                        "%s: there is only %s; have both train and val (or test), or give the path "
                        "of the folder that has the classes",
                        dir, first);
    return folder_list_mix(&f->list, dir, err);
}

static bool list_files(Dataset *ds, RtError *err)
{
    static const char *const train_names[] = {"train", NULL};
    static const char *const held_out_names[] = {"val", "test", NULL};
    Folder *f = ds->state;
    const char *dir = ds->spec.path ? ds->spec.path : "";
    bool ok = true;
    f->root_bytes = strlen(dir) + 1;
    f->list.root = dir;
    f->list.endings = f->form->endings;
    f->list.ending_text = f->form->ending_text;
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

/* ---- what cannot be read ---- */

static void know_one(void *user, int64_t i)
{
    left_out_know(user, i);
}

/* Files that this run has found damaged before: they have numbers, and stay left out. */
static bool know_left_out(Folder *f, RtError *err)
{
    const FolderList *list = &f->list;
    return left_out_open(&f->left_out, list->n, list->n_also, err) &&
           folder_list_each_also(list, know_one, &f->left_out, err);
}

static bool look_at_files(Folder *f, void *needs, RtError *err)
{
    int64_t stride = 1 + f->list.n / FILES_LOOKED_AT, bad = 0, first = 0, looked = 0;
    RtError why = {{0}};
    for (int64_t i = 0; i < f->list.n; i += stride) {
        RtError here = {{0}};
        looked++;
        if (f->left_out.is[i])
            continue;
        if (f->form->look(f, folder_list_path(&f->list, i), needs, &here))
            continue;
        if (bad++ == 0) {
            first = i;
            why = here;
        }
        left_out_find(&f->left_out, i, here.message);
    }
    return bad <= f->left_out.limit ||
           rt_error(err,
                    "%s: %s; %lld of %lld files looked at are no %s that can be read, and at most "
                    "%lld are left out",
                    folder_list_path(&f->list, first), why.message, (long long)bad,
                    (long long)looked, f->form->many, (long long)f->left_out.limit);
}

bool folder_look(Dataset *ds, const FolderForm *form, void *needs, RtError *err)
{
    Folder *f = ds->state = rt_alloc(1, sizeof *f, err);
    if (!f)
        return false;
    f->form = form;
    f->ds = ds;
    return list_files(ds, err) && know_left_out(f, err) && look_at_files(f, needs, err);
}

/* What classes are called, by their numbers, for the checkpoint; as a table's categories are. NULL:
 * JSON cannot have them, or they are too many; their numbers then have to do. */
static json_t *class_names(const FolderList *list)
{
    json_t *values = list->n_classes <= CATEGORIES_MAX ? json_array() : NULL;
    size_t bytes = 0;
    bool ok = values != NULL;
    for (int64_t c = 0; ok && c < list->n_classes; c++) {
        bytes += strlen(list->classes[c]);
        ok = bytes <= CATEGORIES_MAX_BYTES &&
             json_array_append_new(values, json_string(list->classes[c])) == 0;
    }
    if (ok)
        return json_pack("{s:[{s:o}]}", "label", "values", values);
    json_decref(values);
    return NULL;
}

bool folder_make_room(Dataset *ds, int64_t floats, RtError *err)
{
    Folder *f = ds->state;
    int64_t all, bytes, batch = ds->spec.batch;
    DataField *label = data_add_field(ds, "label", RT_I32, 0, NULL);
    label->label = true;
    label->min_id = 0;
    label->max_id = f->list.n_classes - 1;
    ds->learned = class_names(&f->list);
    if (!rt_mul(batch, floats, &all) || !rt_mul(all, (int64_t)sizeof(float), &bytes))
        return rt_error(err, "a batch of %lld %s does not fit the address space", (long long)batch,
                        f->form->many);
    f->values = rt_alloc(all, sizeof(float), err);
    f->place = f->values ? rt_alloc(batch, sizeof *f->place, err) : NULL;
    ds->loaded_bytes = folder_list_bytes(&f->list) + bytes;
    return f->place != NULL;
}

void folder_close(Dataset *ds)
{
    Folder *f = ds->state;
    if (!f)
        return;
    loader_free(f->loader);
    left_out_close(&f->left_out);
    folder_list_free(&f->list);
    free(f->values);
    free(f->place);
    free(f);
}

LeftOutList *folder_left_out(const Dataset *ds)
{
    Folder *f = ds->state;
    return &f->left_out;
}

const char *folder_name(const Dataset *ds, int64_t i)
{
    const Folder *f = ds->state;
    return folder_list_path(&f->list, i) + f->root_bytes;
}
