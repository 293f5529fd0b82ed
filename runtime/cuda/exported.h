/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What `scrimp compile --device cuda` links into a step's shared object, so that a C program runs
 * the step without scrimp: codegen/build/export_device.c gives these functions the step's name, and
 * the header that it writes declares them and these structs (codegen/build/header/device_*.in).
 * Functions return 0 after a failure, whose message exported_error has. */
#ifndef SCRIMP_RUNTIME_CUDA_EXPORTED_H
#define SCRIMP_RUNTIME_CUDA_EXPORTED_H

#include <stdint.h>

typedef struct ExportedTensor {
    const char *kind, *name, *dtype, *init; /* init: of persistent tensors, else NULL */
    int rank;
    int64_t dims[8];
    int perm[8];
    int64_t offset, bytes;
} ExportedTensor;

/* A file NAME.cubin in a folder of the architecture's name beside the shared object; or NAME.plan,
 * what a library does. */
typedef struct ExportedKernel {
    const char *name;    /* also of its function */
    const char *library; /* NULL: a kernel */
    int32_t threads;
    int64_t bytes;
    uint64_t checksum; /* scrimp_checksum of the file */
} ExportedKernel;

typedef struct ExportedStep {
    const char *key; /* which manifest.json beside the shared object has, too */
    int64_t arena_bytes;
    int32_t driver; /* the oldest that loads the kernels: 12000 for 12.0 */
    int32_t n_tensors, n_kernels, n_archs;
    const ExportedTensor *tensor;
    const char *const *arch;
    const ExportedKernel *kernel; /* n_kernels of the first architecture, then those of the next */
} ExportedStep;

typedef struct ExportedContext {
    char *arena; /* an image: what is never written takes no memory */
    void *device;
} ExportedContext;

int exported_open(ExportedContext *ctx, const ExportedStep *step);
void exported_close(ExportedContext *ctx);
int exported_run(ExportedContext *ctx);
int exported_send(ExportedContext *ctx);
int exported_fetch(ExportedContext *ctx);
const char *exported_error(void);

#endif
