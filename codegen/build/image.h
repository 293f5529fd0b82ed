/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A shared object that is loaded from memory: the bytes that were verified are the bytes that run,
 * whatever becomes of the file they came from. */
#ifndef SCRIMP_CODEGEN_BUILD_IMAGE_H
#define SCRIMP_CODEGEN_BUILD_IMAGE_H

#include "ir/support/pool.h"

typedef struct Image {
    void *handle; /* of dlopen */
    int file;     /* the sealed copy that is mapped, or -1 */
} Image;

/* False and *error when the bytes cannot be loaded. */
bool image_load(Pool *pool, const void *bytes, size_t n, Image *out, const char **error);
void *image_symbol(const Image *image, const char *name);
void image_unload(Image *image);

#endif
