/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by compile.c, export.c and dump.c. */
#ifndef SCRIMP_CODEGEN_BUILD_COMPILE_H
#define SCRIMP_CODEGEN_BUILD_COMPILE_H

#include "codegen/build/codegen.h"
#include "codegen/build/step.h"

#include <sys/types.h>

/* The target named by march; NULL and *error when unknown, or when `run` and this machine cannot.
 */
const Target *codegen_target(Pool *pool, const char *march, bool run, const char **error);
/* What the options ask for; target: of the host. */
StepTarget step_target(const CodegenOptions *o, const Target *target);
/* A step in memory, on the program's pool. */
typedef struct BuiltStep {
    const char *so; /* its shared object */
    size_t so_bytes;
    const void *const *image; /* by kernel, where they are not linked */
    const size_t *image_bytes;
} BuiltStep;
/* Compiles what the cache has not, and links. */
bool codegen_build(const StepProgram *program, const CodegenOptions *o, BuiltStep *out,
                   const char **error);
/* Writes a file of an export under a temporary name, which then becomes path. */
bool codegen_write(Pool *pool, const char *path, const void *bytes, size_t n, mode_t mode,
                   const char **error);

#endif
