/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the jobs of workers.h that generate code begin and end with. */
#ifndef SCRIMP_CODEGEN_BUILD_JOB_H
#define SCRIMP_CODEGEN_BUILD_JOB_H

#include "codegen/build/step.h"

/* One kernel of a step, to be written and freed (job_end). */
Jit *job_kernel(const StepProgram *p, int kernel);
/* Frees j, and says in message what went wrong unless it was written.  Returns `written`. */
bool job_end(Jit *j, bool written, const char *error, char *message, size_t size);

#endif
