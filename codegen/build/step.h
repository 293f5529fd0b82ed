/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The host step: one exported function that runs every kernel of the plan, by a table of calls at
 * fixed offsets. */
#ifndef SCRIMP_CODEGEN_BUILD_STEP_H
#define SCRIMP_CODEGEN_BUILD_STEP_H

#include "codegen/build/program.h"

/* What a step is made for. */
typedef struct StepTarget {
    const Backend *backend;
    const Target *target;
    const char *arch; /* of a device; NULL for the host */
    const Tuning *tuning;
    int64_t strip_cache; /* see CodegenOptions */
    bool only_look; /* nothing is compiled: it needs no compiler, and keys are not the real ones */
} StepTarget;

/* plan: NULL when nobody asks where buffers lie.  NULL and *error where the backend's compiler is
 * not there. */
StepProgram *step_program(Pool *pool, const Graph *g, const MemPlan *plan, StepTarget target,
                          const char **error);
/* "k_" + key: the exported symbol of a kernel. */
const char *step_kernel_symbol(const StepProgram *p, int kernel);
/* What the runtime loads for a kernel that is not linked. */
ScrimpDeviceKernel step_device_kernel(const StepProgram *p, int kernel, const void *image,
                                      size_t bytes);
/* The identity of the code generator: what is measured of one says nothing of another. */
const char *codegen_generator(void);
/* By call: the key of its kernel. */
const char *const *step_call_keys(const StepProgram *p);
/* Content key of the whole step: kernels, offsets, numbers, task counts. */
const char *step_key(const StepProgram *p);
/* Emits scrimp_step into j. */
void step_emit(Jit *j, const StepProgram *p);

#endif
