/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Batches of the data sources that read folders.
 *
 * While the step runs on batch k, threads decode batch k + 1 into memory of the folder.  What a
 * batch holds depends on (seed, number) and on the files only; being a batch ahead is a guess that
 * costs time when wrong.
 *
 * A file that cannot be read is left out: in training its place takes another one that is drawn for
 * (seed, number, place), in evaluation the place stays empty.  So it does not matter when it is
 * found, or whether it was known before. */
#include "runtime/folder.h"
#include "runtime/rng.h"

#include <string.h>

/* ---- one place ---- */

/* With 99 of 100 files readable, fewer tries than these are ever needed. */
enum { MOST_TRIES = 64 };

float *folder_values(const Folder *f, int64_t b)
{
    return f->values + b * (f->ds->field_bytes[0] / (int64_t)sizeof *f->values);
}

double folder_draw(const Folder *f, int64_t b, int k)
{
    uint32_t bits = rt_rng_bits(f->ds->spec.seed, (uint64_t)f->number, rt_name_key("data.crop"),
                                (uint64_t)b * 64 + (uint64_t)k);
    return bits * 0x1p-32;
}

/* False when the file is left out, or (with *failed) after an error. */
static bool show_file(Folder *f, int64_t b, int64_t i, void *scratch, bool *failed, RtError *err)
{
    FolderPlace *place = &f->place[b];
    bool damaged = false;
    if (f->left_out.is[i])
        return false;
    if (f->form->show(f, b, i, scratch, &damaged, err)) {
        place->shown = i;
        return true;
    }
    *failed = !damaged;
    if (damaged && place->found < 0) {
        place->found = i;
        place->why = *err;
    }
    return false;
}

static int64_t instead(const Folder *f, int64_t b, int attempt)
{
    return (int64_t)rt_rng_below((uint64_t)f->ds->n_train, f->ds->spec.seed, (uint64_t)f->number,
                                 rt_name_key("data.instead"),
                                 (uint64_t)b * MOST_TRIES + (uint64_t)attempt);
}

bool folder_place_fill(void *owner, int64_t b, void *scratch, RtError *err)
{
    Folder *f = owner;
    FolderPlace *place = &f->place[b];
    int64_t i = place->example;
    bool failed = false;
    place->shown = place->found = -1;
    for (int attempt = 0; i >= 0; attempt++) {
        if (show_file(f, b, i, scratch, &failed, err))
            return true;
        if (failed)
            return rt_error_prefix(err, "%s", folder_list_path(&f->list, i));
        if (f->training && attempt == MOST_TRIES)
            return rt_error(err, "%s: neither it nor any of %d others can be read",
                            folder_list_path(&f->list, i), MOST_TRIES);
        i = f->training ? instead(f, b, attempt) : -1;
    }
    memset(folder_values(f, b), 0, (size_t)f->ds->field_bytes[0]);
    return true;
}

/* ---- batches ---- */

static bool start(Folder *f, bool training, int64_t number, RtError *err)
{
    const Dataset *ds = f->ds;
    loader_wait(f->loader, NULL);
    f->training = training;
    f->taken = false;
    f->number = number;
    for (int64_t b = 0; b < ds->spec.batch; b++)
        f->place[b].example = data_batch_example(ds, training, number, b);
    f->there = loader_start(f->loader, ds->spec.batch, err);
    return f->there;
}

static bool too_many(const Folder *f, RtError *err)
{
    return rt_error(err,
                    "more than %lld of %lld %s cannot be read, which is the limit: is the disk or "
                    "the copy in order? Delete them or put good ones in their place",
                    (long long)f->left_out.limit, (long long)f->list.n, f->form->many);
}

/* In the order of places, and of batches that were asked for: what threads found first does not
 * matter. */
static bool note_left_out(Folder *f, RtError *err)
{
    for (int64_t b = 0; b < f->ds->spec.batch; b++) {
        const FolderPlace *p = &f->place[b];
        if (p->found >= 0 && !left_out_find(&f->left_out, p->found, p->why.message))
            return too_many(f, err);
    }
    return true;
}

static void copy_out(const Folder *f, void *const *dst)
{
    const Dataset *ds = f->ds;
    if (dst[0])
        memcpy(dst[0], f->values, (size_t)(ds->spec.batch * ds->field_bytes[0]));
    for (int64_t b = 0; dst[1] && b < ds->spec.batch; b++) {
        int64_t i = f->place[b].shown;
        ((int32_t *)dst[1])[b] = i < 0 ? ds->field[1].ignored : f->list.label[i];
    }
}

/* Batches are asked for in order but for evaluations in between, and for one batch again and again
 * (--overfit): the next one is made in advance when the last two came in order. */
bool folder_batch(const Dataset *ds, bool training, int64_t number, void *const *dst, RtError *err)
{
    Folder *f = ds->state;
    bool same_part = f->there && training == f->training, made = same_part && number == f->number;
    bool in_order = !f->there || (made ? !f->taken : same_part && number == f->number + 1);
    if (!made && !start(f, training, number, err))
        return false;
    if (!loader_wait(f->loader, err) || !note_left_out(f, err)) {
        f->there = false;
        return false;
    }
    copy_out(f, dst);
    f->taken = true;
    bool more = training || number + 1 < dataset_eval_batches(ds);
    return !more || !in_order || start(f, training, number + 1, err);
}
