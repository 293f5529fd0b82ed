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
/* Whether cuBLASLt takes the descriptions of a plan's matrices and product, which needs no device;
 * that there is an algorithm, only loading it can say. */
bool cuda_cublaslt_describes(const char *plan, int64_t bytes, RtError *err);

/* --- for the libraries: plans of lines "key value" --- */

/* A number of a plan. */
typedef struct PlanField {
    const char *key;
    int64_t *value;
} PlanField;

/* Reads these lines, in this order; where the next one begins, or NULL. */
const char *cuda_plan_part(const char *at, const char *end, const PlanField *field, int n);
/* Reads the lines of a plan, which has exactly these, in this order. */
bool cuda_plan_read(const char *plan, int64_t bytes, const PlanField *field, int n, RtError *err);

#endif
