/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Batches of the imagefolder data source.
 *
 * While the step runs on batch k, threads decode batch k + 1 into memory of the folder.  What a
 * batch holds depends on (seed, number) and on the files only; being a batch ahead is a guess that
 * costs time when wrong.
 *
 * A picture that cannot be read is left out: in training its place takes another picture that is
 * drawn for (seed, number, place), in evaluation the place stays empty.  So it does not matter when
 * it is found, or whether it was known before. */
#include "runtime/picture_folder.h"
#include "runtime/rng.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- what part of a picture ---- */

/* Uniform in [0, 1): draw k for place b of training batch `number`. */
static double draw(const PictureFolder *f, int64_t b, int k)
{
    uint32_t bits = rt_rng_bits(f->ds->spec.seed, (uint64_t)f->number, rt_name_key("data.crop"),
                                (uint64_t)b * 64 + (uint64_t)k);
    return bits * 0x1p-32;
}

/* torchvision's RandomResizedCrop: 8% to 100% of the area at a ratio of 3:4 to 4:3, ten tries; then
 * the largest part of an allowed ratio in the middle. */
static ImageWindow random_window(const PictureFolder *f, int64_t b, const Image *image)
{
    double width = (double)image->width, height = (double)image->height, w = 0, h = 0;
    bool fits = false;
    int k = 1;
    for (int tries = 0; tries < 10 && !fits; tries++, k += 2) {
        double area = width * height * (0.08 + 0.92 * draw(f, b, k));
        double ratio = exp((2 * draw(f, b, k + 1) - 1) * log(4.0 / 3));
        w = round(sqrt(area * ratio));
        h = round(sqrt(area / ratio));
        fits = w >= 1 && h >= 1 && w <= width && h <= height;
    }
    double x = floor(draw(f, b, k) * (width - w + 1)),
           y = floor(draw(f, b, k + 1) * (height - h + 1));
    if (!fits) {
        w = fmax(1, fmin(width, round(height * 4 / 3)));
        h = fmax(1, fmin(height, round(width * 4 / 3)));
        x = floor((width - w) / 2);
        y = floor((height - h) / 2);
    }
    return (ImageWindow){.x = x,
                         .y = y,
                         .width = w,
                         .height = h,
                         .left = (int64_t)x,
                         .top = (int64_t)y,
                         .right = (int64_t)(x + w),
                         .bottom = (int64_t)(y + h),
                         .mirrored = draw(f, b, 0) < 0.5};
}

/* ---- one place ---- */

/* With 99 of 100 pictures readable, fewer tries than these are ever needed. */
enum { MOST_TRIES = 64 };

static float *place_planes(const PictureFolder *f, int64_t b)
{
    return f->images + b * 3 * f->ds->spec.size * f->ds->spec.size;
}

static bool sample_place(const PictureFolder *f, int64_t b, PictureReader *r, RtError *err)
{
    const DataSpec *spec = &f->ds->spec;
    ImageWindow window = f->training && spec->augment
                             ? random_window(f, b, &r->image)
                             : image_center(&r->image, spec->size, spec->resize);
    return image_sample(&r->image, &window, spec->size, spec->mean, spec->std, &r->scratch,
                        place_planes(f, b), err);
}

/* False when the picture is left out, or (with *failed) after an error. */
static bool show_picture(PictureFolder *f, int64_t b, int64_t i, PictureReader *r, bool *failed,
                         RtError *err)
{
    PicturePlace *place = &f->place[b];
    bool damaged = false;
    if (f->left_out.is[i])
        return false;
    if (picture_read(r, picture_path(&f->list, i), &damaged, err)) {
        *failed = !sample_place(f, b, r, err);
        place->shown = *failed ? -1 : i;
        return !*failed;
    }
    *failed = !damaged;
    if (damaged && place->found < 0) {
        place->found = i;
        place->why = *err;
    }
    return false;
}

static int64_t instead(const PictureFolder *f, int64_t b, int attempt)
{
    return (int64_t)rt_rng_below((uint64_t)f->ds->n_train, f->ds->spec.seed, (uint64_t)f->number,
                                 rt_name_key("data.instead"),
                                 (uint64_t)b * MOST_TRIES + (uint64_t)attempt);
}

bool picture_place_fill(void *owner, int64_t b, void *scratch, RtError *err)
{
    PictureFolder *f = owner;
    PicturePlace *place = &f->place[b];
    int64_t i = place->example;
    bool failed = false;
    place->shown = place->found = -1;
    for (int attempt = 0; i >= 0; attempt++) {
        if (show_picture(f, b, i, scratch, &failed, err))
            return true;
        if (failed)
            return rt_error_prefix(err, "%s", picture_path(&f->list, i));
        if (f->training && attempt == MOST_TRIES)
            return rt_error(err, "%s: neither it nor any of %d others can be read",
                            picture_path(&f->list, i), MOST_TRIES);
        i = f->training ? instead(f, b, attempt) : -1;
    }
    memset(place_planes(f, b), 0, (size_t)f->ds->field_bytes[0]);
    return true;
}

/* ---- batches ---- */

static bool start(PictureFolder *f, bool training, int64_t number, RtError *err)
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

static bool too_many(const PictureFolder *f, RtError *err)
{
    return rt_error(err,
                    "more than %lld of %lld pictures cannot be read, which is the limit: is the "
                    "disk or the copy in order? Delete them or put good ones in their place",
                    (long long)f->left_out.limit, (long long)f->list.n);
}

/* In the order of places, and of batches that were asked for: what threads found first does not
 * matter. */
static bool note_left_out(PictureFolder *f, RtError *err)
{
    for (int64_t b = 0; b < f->ds->spec.batch; b++) {
        const PicturePlace *p = &f->place[b];
        if (p->found >= 0 && !left_out_find(&f->left_out, p->found, p->why.message))
            return too_many(f, err);
    }
    return true;
}

static void copy_out(const PictureFolder *f, void *const *dst)
{
    const Dataset *ds = f->ds;
    if (dst[0])
        memcpy(dst[0], f->images, (size_t)(ds->spec.batch * ds->field_bytes[0]));
    for (int64_t b = 0; dst[1] && b < ds->spec.batch; b++) {
        int64_t i = f->place[b].shown;
        ((int32_t *)dst[1])[b] = i < 0 ? ds->field[1].ignored : f->list.label[i];
    }
}

/* Batches are asked for in order but for evaluations in between, and for one batch again and again
 * (--overfit): the next one is made in advance when the last two came in order. */
bool picture_batch(const Dataset *ds, bool training, int64_t number, void *const *dst, RtError *err)
{
    PictureFolder *f = ds->state;
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
