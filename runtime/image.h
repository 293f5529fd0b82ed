/* JPEG and PNG pictures, and windows of them as what a network reads: planes of normalized floats.
 * Called by the imagefolder data source, from several threads at once (each with an Image and an
 * ImageScratch of its own). */
#ifndef SCRIMP_RUNTIME_IMAGE_H
#define SCRIMP_RUNTIME_IMAGE_H

#include "runtime/status.h"

/* A larger picture is refused: 64 megapixels are 192 MiB of memory for each thread, 256 MiB with
 * alpha or CMYK. */
enum { IMAGE_MAX_PIXELS = 64 * 1024 * 1024 };

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
/* Whether the first IMAGE_MAGIC_BYTES of a file are those of a JPEG or PNG picture; n: how many
 * there are. */
enum { IMAGE_MAGIC_BYTES = 8 };
bool image_has_magic(const unsigned char *bytes, int64_t n);
void image_free(Image *image);

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
void image_scratch_free(ImageScratch *scratch);

/* planes[3][size][size] = (window / 255 - mean) / std per channel.  Bilinear with the filter
 * widened when it shrinks (antialiased), as Pillow and torchvision's Resize have it; they round to
 * 8 bits after each direction, this does not.  False when out of memory. */
bool image_sample(const Image *image, const ImageWindow *window, int64_t size, const double mean[3],
                  const double std[3], ImageScratch *scratch, float *planes, RtError *err);

#endif
