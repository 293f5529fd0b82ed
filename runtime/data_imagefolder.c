/* imagefolder(DIR): JPEG and PNG pictures, a folder for each class, cut and scaled to one size.
 * DIR/train and DIR/val (or DIR/test) are the parts to train on and to hold out, if there are both;
 * else DIR itself has the classes.
 *
 * While the step runs on batch k, threads decode batch k + 1 into memory of this file.  What a
 * batch holds depends on (seed, number) only; being a batch ahead is a guess that costs time when
 * wrong. */
#include "runtime/cores.h"
#include "runtime/data_internal.h"
#include "runtime/image.h"
#include "runtime/loader.h"
#include "runtime/picture_list.h"
#include "runtime/rng.h"
#include "runtime/threads.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file larger than this is no picture of at most IMAGE_MAX_PIXELS. */
#define PICTURE_MAX_BYTES ((int64_t)1 << 30)

/* At most so many files are opened at the start: about a second when their folders are in memory.
 */
enum { HEADERS_CHECKED = 50000 };

typedef struct Folder {
    PictureList list;
    Loader *loader;
    /* The batch in `images`, being made or complete; taken: it has been asked for. */
    bool there, taken, training;
    int64_t number;
    int64_t *example; /* place -> picture, -1 = none */
    float *images;
    const Dataset *ds;
} Folder;

typedef struct Worker {
    Image image;
    ImageScratch scratch;
} Worker;

static void worker_done(void *scratch)
{
    Worker *w = scratch;
    image_free(&w->image);
    image_scratch_free(&w->scratch);
}

/* ---- what part of a picture ---- */

/* Uniform in [0, 1): draw k for place b of training batch `number`. */
static double draw(const Folder *f, int64_t b, int k)
{
    uint32_t bits = rt_rng_bits(f->ds->spec.seed, (uint64_t)f->number, rt_name_key("data.crop"),
                                (uint64_t)b * 64 + (uint64_t)k);
    return bits * 0x1p-32;
}

/* torchvision's RandomResizedCrop: 8% to 100% of the area at a ratio of 3:4 to 4:3, ten tries; then
 * the largest part of an allowed ratio in the middle. */
static ImageWindow random_window(const Folder *f, int64_t b, const Image *image)
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

/* ---- one picture ---- */

static int64_t plane_floats(const Dataset *ds)
{
    return ds->spec.size * ds->spec.size;
}

static bool make_picture(Folder *f, int64_t b, const FileBytes *file, Worker *w, RtError *err)
{
    const DataSpec *spec = &f->ds->spec;
    if (!image_decode(file->data, file->bytes, &w->image, err))
        return false;
    ImageWindow window = f->training && spec->augment
                             ? random_window(f, b, &w->image)
                             : image_center(&w->image, spec->size, spec->resize);
    return image_sample(&w->image, &window, spec->size, spec->mean, spec->std, &w->scratch,
                        f->images + b * 3 * plane_floats(f->ds), err);
}

static bool load_picture(void *owner, int64_t b, void *scratch, RtError *err)
{
    Folder *f = owner;
    FileBytes file = {0};
    if (f->example[b] < 0) {
        memset(f->images + b * 3 * plane_floats(f->ds), 0, (size_t)f->ds->field_bytes[0]);
        return true;
    }
    const char *path = picture_path(&f->list, f->example[b]);
    if (!file_read(path, PICTURE_MAX_BYTES, &file, err))
        return false;
    bool ok = make_picture(f, b, &file, scratch, err) || rt_error_prefix(err, "%s", path);
    file_release(&file);
    return ok;
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
        f->example[b] = data_batch_example(ds, training, number, b);
    f->there = loader_start(f->loader, ds->spec.batch, err);
    return f->there;
}

static void copy_out(const Folder *f, void *const *dst)
{
    const Dataset *ds = f->ds;
    if (dst[0])
        memcpy(dst[0], f->images, (size_t)(ds->spec.batch * ds->field_bytes[0]));
    for (int64_t b = 0; dst[1] && b < ds->spec.batch; b++)
        ((int32_t *)dst[1])[b] =
            f->example[b] < 0 ? ds->field[1].ignored : f->list.label[f->example[b]];
}

/* Batches are asked for in order but for evaluations in between, and for one batch again and again
 * (--overfit): the next one is made in advance when the last two came in order. */
static bool folder_batch(const Dataset *ds, bool training, int64_t number, void *const *dst,
                         RtError *err)
{
    Folder *f = ds->state;
    bool same_part = f->there && training == f->training, made = same_part && number == f->number;
    bool in_order = !f->there || (made ? !f->taken : same_part && number == f->number + 1);
    if (!made && !start(f, training, number, err))
        return false;
    if (!loader_wait(f->loader, err)) {
        f->there = false;
        return false;
    }
    copy_out(f, dst);
    f->taken = true;
    bool more = training || number + 1 < dataset_eval_batches(ds);
    return !more || !in_order || start(f, training, number + 1, err);
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
                 "%.120s has no picture of %lld of the %lld classes, the first of them '%.60s'",
                 dir, (long long)missing, (long long)f->list.n_classes, f->list.classes[at]);
    return true;
}

static bool list_parts(Dataset *ds, const char *train, const char *held_out, RtError *err)
{
    Folder *f = ds->state;
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
static bool list_classes(Folder *f, const char *dir, RtError *err)
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
    Folder *f = ds->state;
    const char *dir = ds->spec.path ? ds->spec.path : "";
    bool ok = true;
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

static bool is_picture_file(const char *path)
{
    unsigned char first[IMAGE_MAGIC_BYTES];
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    size_t n = fread(first, 1, sizeof first, file);
    fclose(file);
    return image_has_magic(first, (int64_t)n);
}

/* What is no picture at all is found before training and not hours later; of many, a sample. */
static bool check_files(const PictureList *list, RtError *err)
{
    int64_t stride = 1 + list->n / HEADERS_CHECKED, bad = 0, first = 0, looked = 0;
    for (int64_t i = 0; i < list->n; i += stride) {
        looked++;
        if (!is_picture_file(picture_path(list, i)) && bad++ == 0)
            first = i;
    }
    return bad == 0 ||
           rt_error(err,
                    "%s: neither a JPEG nor a PNG picture, or not readable; so are %lld of %lld "
                    "files looked at",
                    picture_path(list, first), (long long)bad, (long long)looked);
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

static bool make_room(Dataset *ds, RtError *err)
{
    Folder *f = ds->state;
    int64_t floats, bytes, batch = ds->spec.batch;
    if (!rt_mul(batch, 3 * plane_floats(ds), &floats) ||
        !rt_mul(floats, (int64_t)sizeof(float), &bytes))
        return rt_error(err, "a batch of %lld pictures does not fit the address space",
                        (long long)batch);
    f->images = rt_alloc(floats, sizeof(float), err);
    f->example = rt_alloc(batch, sizeof *f->example, err);
    f->loader = f->images && f->example
                    ? loader_new(cores_allowed(), sizeof(Worker), load_picture, worker_done, f, err)
                    : NULL;
    ds->loaded_bytes = pictures_bytes(&f->list) + bytes;
    return f->loader != NULL;
}

static bool folder_open(Dataset *ds, RtError *err)
{
    Folder *f = ds->state = rt_alloc(1, sizeof *f, err);
    if (!f || !check_sizes(&ds->spec, err) || !list_pictures(ds, err) ||
        !check_files(&f->list, err))
        return false;
    f->ds = ds;
    data_add_field(ds, "image", RT_F32, 3, (int64_t[]){3, ds->spec.size, ds->spec.size});
    DataField *label = data_add_field(ds, "label", RT_I32, 0, NULL);
    label->label = true;
    label->min_id = 0;
    label->max_id = f->list.n_classes - 1;
    return make_room(ds, err);
}

static void folder_close(Dataset *ds)
{
    Folder *f = ds->state;
    if (!f)
        return;
    loader_free(f->loader);
    pictures_free(&f->list);
    free(f->images);
    free(f->example);
    free(f);
}

const DataKind data_imagefolder = {
    .name = "imagefolder", .open = folder_open, .close = folder_close, .batch = folder_batch};
