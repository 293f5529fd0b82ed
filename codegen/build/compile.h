/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by compile.c, export.c and dump.c. */
#ifndef SCRIMP_CODEGEN_BUILD_COMPILE_H
#define SCRIMP_CODEGEN_BUILD_COMPILE_H

#include "codegen/build/codegen.h"
#include "codegen/build/step.h"

/* The target named by march; NULL and *error when unknown, or when `run` and this machine cannot.
 */
const Target *codegen_target(Pool *pool, const char *march, bool run, const char **error);
/* What the options ask for; target: of the host. */
StepTarget step_target(const CodegenOptions *o, const Target *target);
/* Compiles what the cache has not and links the step into so_path (written under a temporary name).
 */
bool codegen_build_so(const StepProgram *program, const CodegenOptions *o, const char *so_path,
                      const char **error);

#endif
