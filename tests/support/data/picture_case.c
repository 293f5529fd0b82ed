/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/data/picture_case.h"

#include "check.h"
#include "tests/support/data/temp.h"

#include <stdio.h>

void write_png(const char *name, int width, int height, unsigned format,
               const unsigned char *pixels)
{
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .width = (png_uint_32)width,
                     .height = (png_uint_32)height,
                     .format = format};
    CHECK(png_image_write_to_file(&png, temp_path(name), 0, pixels, 0, NULL));
}

void write_png16(const char *name, int width, int height, const unsigned char *rgb)
{
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    FILE *out = fopen(temp_path(name), "wb");
    CHECK(out && info);
    png_init_io(png, out);
    png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, 16, PNG_COLOR_TYPE_RGB,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (int y = 0; y < height; y++)
        png_write_row(png, rgb + 6 * y * width);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    CHECK(fclose(out) == 0);
}

void write_jpeg(const char *name, int width, int height, int format, const unsigned char *pixels)
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
