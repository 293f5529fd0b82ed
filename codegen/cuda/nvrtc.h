/* SPDX-License-Identifier: GPL-3.0-or-later */
/* NVRTC, NVIDIA's compiler of CUDA C as a library: found when it is asked for, never linked. */
#ifndef SCRIMP_CODEGEN_CUDA_NVRTC_H
#define SCRIMP_CODEGEN_CUDA_NVRTC_H

#include "ir/support/pool.h"

/* "NVRTC 13.0 sm_90", with the options that decide what it makes.  NULL and *error, with a way out,
 * where it is not there. */
const char *nvrtc_compiler(Pool *pool, const char *arch, const char **error);
/* The oldest driver that loads its images, 13000 for 13.0: one of the same major version, whatever
 * the minor one.  0 where it is not there. */
int nvrtc_driver(void);
/* Compiles the text for an architecture ("sm_90"): an image that the driver loads, on the pool, or
 * NULL.  *messages: what the compiler says, on success too: registers and spills of the kernel. */
const void *nvrtc_compile(Pool *pool, const char *text, const char *arch, size_t *bytes,
                          const char **messages);

#endif
