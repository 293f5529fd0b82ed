/* SPDX-License-Identifier: GPL-3.0-or-later */
/* JPEG and PNG pictures, and windows of them as what a network reads: planes of normalized floats.
 * Called by the imagefolder data source, from several threads at once (each with an Image and an
 * ImageScratch of its own). */
#ifndef SCRIMP_RUNTIME_IMAGE_H
#define SCRIMP_RUNTIME_IMAGE_H

#include "runtime/status.h"

/* A larger picture is refused: 64 megapixels are 192 MiB of memory for each thread, 256 MiB as PNG
 * or CMYK. */
enum { IMAGE_MAX_PIXELS = 64 * 1024 * 1024 };
/* A file larger than this is no picture of at most IMAGE_MAX_PIXELS. */
#define IMAGE_MAX_FILE_BYTES ((int64_t)1 << 30)

/* 8-bit red, green, blue, row by row from the top left.  The memory is kept from one picture to the
 * next and grows when it has to. */
typedef struct Image {
    int64_t width, height;
    unsigned char *rgb;
    int64_t room; /* bytes at rgb */
} Image;

/* What a file says it is, by its first bytes and not by its name: JPEG or PNG; grey, palette, alpha
 * (dropped), 16 bits and CMYK become RGB.  EXIF orientation is not looked at, as in torchvision.
 * False with a message for anything damaged, too large or of another format. */
bool image_decode(const unsigned char *bytes, int64_t n, Image *image, RtError *err);
/* Memory for pictures of so many bytes; false when out of memory. */
bool image_reserve(Image *image, int64_t bytes, RtError *err);
void image_free(Image *image);

/* What a file's header says of the memory that image_decode and image_sample want. */
typedef struct ImageFacts {
    int64_t file_bytes, width, height;
    int64_t pixel_bytes; /* of an Image */
    /* What libjpeg-turbo or libpng holds at most while it decodes: of a progressive JPEG all
     * coefficients, else rows. */
    int64_t library_bytes;
} ImageFacts;

/* False with a message for what image_decode refuses by its first bytes or its size, or what is not
 * readable.  Damage further in is not seen; sizes that are not to be found by following the
 * segments are 0. */
bool image_look(const char *path, ImageFacts *facts, RtError *err);

/* Which part of a picture fills the output.  Positions are those of pixel edges: the picture is
 * [0, width] x [0, height].  The filter reads nothing outside [left, right) x [top, bottom). */
typedef struct ImageWindow {
    double x, y, width, height;
    int64_t left, top, right, bottom;
    bool mirrored; /* left and right exchanged */
} ImageWindow;

/* torchvision's Resize(resize) and CenterCrop(size) in one: the shorter side becomes `resize`
 * pixels, of which the middle `size` are taken in both directions. */
ImageWindow image_center(const Image *image, int64_t size, int64_t resize);

/* Memory of image_sample, kept from one call to the next. */
typedef struct ImageScratch {
    float *data;
    int64_t room; /* bytes */
} ImageScratch;
/* What image_sample uses at most for any window of such a picture. */
int64_t image_scratch_bytes(int64_t width, int64_t height, int64_t size);
bool image_scratch_reserve(ImageScratch *scratch, int64_t bytes, RtError *err);
void image_scratch_free(ImageScratch *scratch);

/* planes[3][size][size] = (window / 255 - mean) / std per channel.  Bilinear with the filter
 * widened when it shrinks (antialiased), as Pillow and torchvision's Resize have it; they round to
 * 8 bits after each direction, this does not.  False when out of memory. */
bool image_sample(const Image *image, const ImageWindow *window, int64_t size, const double mean[3],
                  const double std[3], ImageScratch *scratch, float *planes, RtError *err);

#endif
