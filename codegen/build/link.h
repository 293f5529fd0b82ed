/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a step's shared object is linked with. */
#ifndef SCRIMP_CODEGEN_BUILD_LINK_H
#define SCRIMP_CODEGEN_BUILD_LINK_H

#include "codegen/build/scratch.h"
#include "codegen/build/step.h"

/* The linker's options, *n of them on the program's pool: the kernels' objects, which lie in the
 * scratch folder, what the program brings along, and which names are seen.  Writes files there. */
const char *const *link_options(const StepProgram *p, const Scratch *scratch, int *n);

#endif
