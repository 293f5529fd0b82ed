/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The host step: one exported function that runs every kernel of the plan, by a table of calls at
 * fixed offsets. */
#ifndef SCRIMP_CODEGEN_BUILD_STEP_H
#define SCRIMP_CODEGEN_BUILD_STEP_H

#include "codegen/build/kernel.h"

/* What a step's shared object is linked with beside its kernels, and what it shows in the place of
 * the step's function. */
typedef struct StepLink {
    const void *object; /* an object file */
    size_t object_bytes;
    const char *const *shown, *const *inside; /* a name, and what it is called in the object */
    int n_shown;
} StepLink;

/* A lowered, planned graph: what the shared object is made of. */
struct StepProgram {
    Pool *pool;
    const Graph *graph;
    const MemPlan *plan;
    const Backend *backend;
    const Target *target; /* of the step itself, and of linked kernels */
    const char *arch;     /* of a device: what its kernels are compiled for; NULL: no device */
    const char *compiler; /* of kernels, and their arch; part of their keys */
    const Call *calls;
    int n_calls;
    bool has_loops;
    int *kernel_of; /* by call */
    int n_kernels;
    int *first_call;         /* by kernel: a call that describes it */
    const char **kernel_key; /* by kernel: content key (hash.h) */
    const char *symbol;      /* of the step's function */
    const StepLink *link;    /* NULL: it is linked with its kernels alone */
};

/* What a step is made for. */
typedef struct StepTarget {
    const Backend *backend;
    const Target *target;
    const char *arch; /* of a device; NULL for the host */
    const Tuning *tuning;
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
/* Byte offset of a call's buffer in the arena; a number is itself. */
int64_t step_buffer_offset(const StepProgram *p, const Call *call, int buf);
/* Emits scrimp_step into j. */
void step_emit(Jit *j, const StepProgram *p);

#endif
