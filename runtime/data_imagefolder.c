/* SPDX-License-Identifier: GPL-3.0-or-later */
/* imagefolder(DIR): JPEG and PNG pictures, a folder for each class, cut and scaled to one size. */
#include "runtime/cores.h"
#include "runtime/folder.h"
#include "runtime/picture_reader.h"

#include <math.h>
#include <stdlib.h>

/* ---- what part of a picture ---- */

/* torchvision's RandomResizedCrop: 8% to 100% of the area at a ratio of 3:4 to 4:3, ten tries; then
 * the largest part of an allowed ratio in the middle. */
static ImageWindow random_window(const Folder *f, int64_t b, const Image *image)
{
    double width = (double)image->width, height = (double)image->height, w = 0, h = 0;
    bool fits = false;
    int k = 1;
    for (int tries = 0; tries < 10 && !fits; tries++, k += 2) {
        double area = width * height * (0.08 + 0.92 * folder_draw(f, b, k));
        double ratio = exp((2 * folder_draw(f, b, k + 1) - 1) * log(4.0 / 3));
        w = round(sqrt(area * ratio));
        h = round(sqrt(area / ratio));
        fits = w >= 1 && h >= 1 && w <= width && h <= height;
    }
    double x = floor(folder_draw(f, b, k) * (width - w + 1)),
           y = floor(folder_draw(f, b, k + 1) * (height - h + 1));
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
                         .mirrored = folder_draw(f, b, 0) < 0.5};
}

/* ---- one picture ---- */

static bool look_at_picture(const Folder *f, const char *path, void *needs, RtError *err)
{
    ImageFacts facts;
    if (!image_look(path, &facts, err))
        return false;
    picture_needs_add(needs, &facts, f->ds->spec.size);
    return true;
}

static bool sample_place(const Folder *f, int64_t b, PictureReader *r, RtError *err)
{
    const DataSpec *spec = &f->ds->spec;
    ImageWindow window = f->training && spec->augment
                             ? random_window(f, b, &r->image)
                             : image_center(&r->image, spec->size, spec->resize);
    return image_sample(&r->image, &window, spec->size, spec->mean, spec->std, &r->scratch,
                        folder_values(f, b), err);
}

static bool show_picture(const Folder *f, int64_t b, int64_t i, void *scratch, bool *damaged,
                         RtError *err)
{
    return picture_read(scratch, folder_list_path(&f->list, i), damaged, err) &&
           sample_place(f, b, scratch, err);
}

static const char *const endings[] = {".jpg", ".jpeg", ".png", NULL};
static const FolderForm pictures = {.one = "picture",
                                    .many = "pictures",
                                    .endings = endings,
                                    .ending_text = ".jpg, .jpeg or .png",
                                    .look = look_at_picture,
                                    .show = show_picture};

/* ---- opening ---- */

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

static void reader_done(void *scratch)
{
    picture_reader_free(scratch);
}

static bool start_readers(Dataset *ds, const PictureNeeds *needs, RtError *err)
{
    Folder *f = ds->state;
    int n = picture_readers_affordable(needs, cores_allowed(), err);
    PictureReader **reader = n ? rt_alloc(n, sizeof(PictureReader *), err) : NULL;
    f->loader = reader
                    ? loader_new(n, sizeof(PictureReader), folder_place_fill, reader_done, f, err)
                    : NULL;
    for (int i = 0; f->loader && i < n; i++)
        reader[i] = loader_scratch(f->loader, i);
    bool ok = f->loader && picture_readers_reserve(reader, n, needs, err);
    free(reader);
    ds->loaded_bytes += n * (picture_needs_bytes(needs) - needs->library_bytes);
    return ok;
}

static bool imagefolder_open(Dataset *ds, RtError *err)
{
    PictureNeeds needs = {0};
    int64_t size = ds->spec.size;
    if (!check_sizes(&ds->spec, err) || !folder_look(ds, &pictures, &needs, err))
        return false;
    data_add_field(ds, "image", RT_F32, 3, (int64_t[]){3, size, size});
    return folder_make_room(ds, 3 * size * size, err) && start_readers(ds, &needs, err);
}

const DataKind data_imagefolder = {.name = "imagefolder",
                                   .traits.file_per_example = true,
                                   .traits.counted = "images",
                                   .open = imagefolder_open,
                                   .close = folder_close,
                                   .batch = folder_batch,
                                   .left_out = folder_left_out,
                                   .example_name = folder_name};
