/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The object file of runtime/cuda/exported.c and what it needs, which a step for a device is linked
 * with. */
#ifndef SCRIMP_CODEGEN_BUILD_EXPORTED_OBJECT_H
#define SCRIMP_CODEGEN_BUILD_EXPORTED_OBJECT_H

#include <stddef.h>

const void *exported_object(size_t *bytes);

#endif
