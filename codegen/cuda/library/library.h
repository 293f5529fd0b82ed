/* SPDX-License-Identifier: GPL-3.0-or-later */
/* NVIDIA's libraries in a step: which nodes they compute, and the calls that ask them to.  A call's
 * text is the problem, in lines "key value" (runtime/cuda/plan.h), of which everything that the
 * library chooses depends; what is built of it is a plan, which runtime/cuda/library.h loads. */
#ifndef SCRIMP_CODEGEN_CUDA_LIBRARY_LIBRARY_H
#define SCRIMP_CODEGEN_CUDA_LIBRARY_LIBRARY_H

#include "codegen/forms/matrix.h"
#include "runtime/cuda/plan.h"

/* Backend.library: of products, convolutions and attention. */
LibraryRule cuda_library;
/* Backend.library_version: "cuBLASLt 130100". */
const char *cuda_library_version(Pool *pool, const char *library);
/* Adds the calls of a node that is marked for a library; false: it is not.  what: for labels. */
bool cuda_library_lowers(const MatrixNode *m, const char *what);
/* The plan of a call of this text for an architecture; NULL and *error where there is none. */
const char *cuda_library_plan(Pool *pool, const Call *call, const char *text, const char *arch,
                              const char **error);

/* --- for the libraries --- */

typedef struct LibraryCode {
    const char *name; /* in graphs, steps and manifests */
    LibraryRule *takes;
    void (*lower)(const MatrixNode *m, const char *what);
    const char *(*version)(Pool *pool);
    /* Of a call's description; NULL: its text is its plan. */
    const char *(*plan)(Pool *pool, const void *desc, const char *arch, const char **error);
} LibraryCode;
extern const LibraryCode cublaslt_library; /* matrix products */
extern const LibraryCode cudnn_library;    /* convolutions, attention */

/* Appends a record's lines. */
void library_write(StrBuf *out, const PlanLines *lines, const void *record);

#endif
