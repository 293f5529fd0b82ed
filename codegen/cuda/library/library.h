/* SPDX-License-Identifier: GPL-3.0-or-later */
/* NVIDIA's libraries in a step: which nodes they compute, and the calls that ask them to.  A call's
 * text is the problem, in lines "key value", of which everything that the library chooses depends;
 * what is built of it is a plan, which runtime/cuda/library.h loads. */
#ifndef SCRIMP_CODEGEN_CUDA_LIBRARY_LIBRARY_H
#define SCRIMP_CODEGEN_CUDA_LIBRARY_LIBRARY_H

#include "codegen/forms/product.h"

/* Backend.library: of the products and convolutions. */
LibraryRule cuda_library;
/* Backend.library_version: "cuBLASLt 130100". */
const char *cuda_library_version(Pool *pool, const char *library);
/* The plan of a call of this text for an architecture; NULL and *error where there is none. */
const char *cuda_library_plan(Pool *pool, const Call *call, const char *text, const char *arch,
                              const char **error);

/* --- cublaslt.c: matrix products --- */

extern const char cublaslt_name[];
/* Whether cuBLASLt computes this node, which is the product *p of its first two operands. */
bool cublaslt_takes(const Graph *g, const Node *n, const Product *p, LibraryUse *out);
/* Adds the call of a node that is marked for it. */
void cublaslt_product(const MatrixNode *m, const Product *p, const char *what);
const char *cublaslt_version(Pool *pool);

/* --- cudnn.c: convolutions --- */

extern const char cudnn_name[];
bool cudnn_takes(const Graph *g, const Node *n, const char *archs, LibraryUse *out);
/* Adds the calls of a node that is marked for it. */
void cudnn_convolution(const MatrixNode *m, const char *what);
/* The problem, and what cuDNN chose for it on such a device. */
const char *cudnn_plan(Pool *pool, const void *desc, const char *arch, const char **error);
const char *cudnn_version_text(Pool *pool);

#endif
