/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The header of a step that is compiled ahead of time; used by export.c. */
#ifndef SCRIMP_CODEGEN_BUILD_EXPORT_HEADER_H
#define SCRIMP_CODEGEN_BUILD_EXPORT_HEADER_H

#include "codegen/build/kernel.h"

/* A kernel as it lies on the disk. */
typedef struct KernelFile {
    const char *symbol, *library; /* library: NULL for a kernel */
    int threads;
    const void *bytes;
    size_t n;
} KernelFile;

/* What a program for a device has to know of its kernels: n_kernels for the first architecture,
 * then those for the next. */
typedef struct DeviceSide {
    const char *key; /* of this export */
    int driver;      /* 12000: 12.0 */
    const char *const *arch;
    int n_archs, n_kernels;
    const KernelFile *kernel;
} DeviceSide;

/* What its file is called behind the dot. */
static inline const char *kernel_file_kind(const KernelFile *k)
{
    return k->library ? "plan" : "cubin";
}

/* C text; name, an identifier, is what all its names begin with.  device: NULL for the host. */
const char *export_header(Pool *pool, const Graph *g, const MemPlan *plan, const char *name,
                          bool inference, const DeviceSide *device);
/* Calls visit for every tensor that the header describes, in its order; what: its name there. */
typedef void ExportedTensor(void *user, ValueId v, const char *kind, const char *what);
void export_tensors(const Graph *g, ExportedTensor *visit, void *user);

#endif
