/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pictures for tests, written by the libraries that read them. */
#ifndef SCRIMP_TESTS_PICTURE_CASE_H
#define SCRIMP_TESTS_PICTURE_CASE_H

#include <png.h>
#include <turbojpeg.h>

/* rgb: width * height * 3 (4 with alpha; 1 when grey). */
void write_png(const char *name, int width, int height, unsigned format,
               const unsigned char *pixels);
/* 16 bits a colour, big-endian, and no gamma: png_image_write_to_file would add one. */
void write_png16(const char *name, int width, int height, const unsigned char *rgb);
/* pixels in the layout `format` of TurboJPEG; without loss of colour resolution. */
void write_jpeg(const char *name, int width, int height, int format, const unsigned char *pixels);

#endif
