/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pictures through libjpeg-turbo and libpng. */
#include "runtime/image_header.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

void image_free(Image *image)
{
    free(image->rgb);
    *image = (Image){0};
}

bool image_reserve(Image *image, int64_t bytes, RtError *err)
{
    if (bytes <= image->room)
        return true;
    free(image->rgb);
    image->rgb = rt_alloc(bytes, 1, err);
    image->room = image->rgb ? bytes : 0;
    return image->rgb != NULL;
}

/* Room for width x height pixels of `channels` bytes. */
static bool set_size(Image *image, int64_t width, int64_t height, int channels, RtError *err)
{
    image->width = width;
    image->height = height;
    return image_size_allowed(width, height, err) &&
           image_reserve(image, width * height * channels, err);
}

/* ---- JPEG ---- */

/* Adobe writes CMYK inverted, and libjpeg hands it out as it is stored.  In place: a pixel's three
 * bytes are written after its four were read, and never past them. */
static void cmyk_to_rgb(Image *image)
{
    int64_t n = image->width * image->height;
    for (int64_t i = 0; i < n; i++) {
        const unsigned char *from = image->rgb + 4 * i;
        unsigned black = from[3];
        const unsigned char rgb[3] = {(unsigned char)(from[0] * black / 255),
                                      (unsigned char)(from[1] * black / 255),
                                      (unsigned char)(from[2] * black / 255)};
        memcpy(image->rgb + 3 * i, rgb, sizeof rgb);
    }
}

static bool jpeg_pixels(tjhandle jpeg, const unsigned char *bytes, int64_t n, Image *image,
                        RtError *err)
{
    int width, height, sampling, colors;
    if (tjDecompressHeader3(jpeg, bytes, (unsigned long)n, &width, &height, &sampling, &colors))
        return rt_error(err, "%s", tjGetErrorStr2(jpeg));
    bool cmyk = colors == TJCS_CMYK || colors == TJCS_YCCK;
    if (!set_size(image, width, height, cmyk ? 4 : 3, err))
        return false;
    /* A warning (a file cut short) leaves part of the picture grey: not to be trained on. */
    if (tjDecompress2(jpeg, bytes, (unsigned long)n, image->rgb, width, 0, height,
                      cmyk ? TJPF_CMYK : TJPF_RGB, TJFLAG_ACCURATEDCT))
        return rt_error(err, "%s", tjGetErrorStr2(jpeg));
    if (cmyk)
        cmyk_to_rgb(image);
    return true;
}

static bool decode_jpeg(const unsigned char *bytes, int64_t n, Image *image, RtError *err)
{
    tjhandle jpeg = tjInitDecompress();
    if (!jpeg)
        return rt_error(err, "out of memory");
    bool ok = jpeg_pixels(jpeg, bytes, n, image, err);
    tjDestroy(jpeg);
    return ok;
}

/* ---- PNG ---- */

/* Alpha is dropped, not blended: RGBA is decoded and the colours are taken as they are. */
static void drop_alpha(Image *image)
{
    int64_t n = image->width * image->height;
    for (int64_t i = 0; i < n; i++)
        memmove(image->rgb + 3 * i, image->rgb + 4 * i, 3);
}

static bool decode_png(const unsigned char *bytes, int64_t n, Image *image, RtError *err)
{
    png_image png = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_memory(&png, bytes, (size_t)n))
        return rt_error(err, "%s", png.message);
    bool alpha = png.format & PNG_FORMAT_FLAG_ALPHA;
    png.format = alpha ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB;
    /* libpng would take 16 bits without a gamma for linear light and make them brighter. */
    png.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
    bool ok = set_size(image, png.width, png.height, alpha ? 4 : 3, err);
    if (ok && !png_image_finish_read(&png, NULL, image->rgb, 0, NULL))
        ok = rt_error(err, "%s", png.message);
    else if (ok && alpha)
        drop_alpha(image);
    png_image_free(&png);
    return ok;
}

bool image_decode(const unsigned char *bytes, int64_t n, Image *image, RtError *err)
{
    if (image_is_jpeg(bytes, n))
        return decode_jpeg(bytes, n, image, err);
    if (image_is_png(bytes, n))
        return decode_png(bytes, n, image, err);
    return rt_error(err, "neither a JPEG nor a PNG picture");
}
