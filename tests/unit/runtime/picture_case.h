/* Pictures for tests, written by the libraries that read them. */
#ifndef SCRIMP_TESTS_PICTURE_CASE_H
#define SCRIMP_TESTS_PICTURE_CASE_H

#include "check.h"
#include "temp.h"

#include <png.h>
#include <turbojpeg.h>

/* rgb: width * height * 3 (4 with alpha; 1 when grey). */
static inline void write_png(const char *name, int width, int height, unsigned format,
                             const unsigned char *pixels)
{
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .width = (png_uint_32)width,
                     .height = (png_uint_32)height,
                     .format = format};
    CHECK(png_image_write_to_file(&png, temp_path(name), 0, pixels, 0, NULL));
}

/* pixels in the layout `format` of TurboJPEG; without loss of colour resolution. */
static inline void write_jpeg(const char *name, int width, int height, int format,
                              const unsigned char *pixels)
{
    unsigned char *bytes = NULL;
    unsigned long n = 0;
    tjhandle jpeg = tjInitCompress();
    CHECK(tjCompress2(jpeg, pixels, width, 0, height, format, &bytes, &n,
                      format == TJPF_GRAY ? TJSAMP_GRAY : TJSAMP_444, 100, 0) == 0);
    temp_write(name, bytes, n);
    tjFree(bytes);
    tjDestroy(jpeg);
}

#endif
