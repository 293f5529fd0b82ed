/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a step lets NVIDIA's libraries do.  A plan says what (codegen/cuda/library/ writes it); it
 * is loaded once and run as often as the step names it, with the buffers that lie in the call's
 * table.  Libraries put work on the stream, and nothing else, so that a step can be captured.
 * Called by step.c. */
#ifndef SCRIMP_RUNTIME_CUDA_LIBRARY_H
#define SCRIMP_RUNTIME_CUDA_LIBRARY_H

#include "runtime/cuda/device.h"

typedef struct CudaLibrary {
    const char *name;
    /* A plan of so many bytes for the device whose context is current; NULL with a message. */
    void *(*load)(const char *plan, int64_t bytes, RtError *err);
    void (*unload)(void *loaded);
    /* Puts it on the stream.  buf: addresses, as they lie in the call's table. */
    bool (*run)(void *loaded, char *const *buf, void *stream, RtError *err);
} CudaLibrary;

/* NULL with a message when there is none of that name. */
const CudaLibrary *cuda_library_named(const char *name, RtError *err);

extern const CudaLibrary cuda_cublaslt, cuda_cudnn;

#endif
