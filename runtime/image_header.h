/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of runtime/image*.c share. */
#ifndef SCRIMP_RUNTIME_IMAGE_HEADER_H
#define SCRIMP_RUNTIME_IMAGE_HEADER_H

#include "runtime/image.h"

/* By the first of n bytes. */
bool image_is_jpeg(const unsigned char *bytes, int64_t n);
bool image_is_png(const unsigned char *bytes, int64_t n);
/* At least one pixel and at most IMAGE_MAX_PIXELS. */
bool image_size_allowed(int64_t width, int64_t height, RtError *err);

#endif
