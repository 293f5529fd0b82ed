/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Kernels for this machine's processor, through libgccjit: functions of a Backend. */
#ifndef SCRIMP_CODEGEN_BUILD_HOST_H
#define SCRIMP_CODEGEN_BUILD_HOST_H

#include "codegen/build/kernel.h"

const char *host_compiler(Pool *pool, const char *arch, const char **error);
/* Writes an object file. */
bool host_compile(const StepProgram *p, int kernel, const char *path, char *message, size_t size);

#endif
