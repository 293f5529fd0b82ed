/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A problem as cuDNN wants to have it: operations on tensors.  Tensors that have an address are
 * named by a letter each.  Called by cudnn_plan.c. */
#ifndef SCRIMP_RUNTIME_CUDA_CUDNN_GRAPH_H
#define SCRIMP_RUNTIME_CUDA_CUDNN_GRAPH_H

#include "runtime/cuda/cudnn_objects.h"
#include "runtime/cuda/plan.h"

enum { CUDNN_OPERATIONS_MOST = 24 };
typedef struct CudnnOperations {
    void *operation[CUDNN_OPERATIONS_MOST];
    int n;
} CudnnOperations;

void cudnn_convolution(CudnnMaker *m, const CudnnProblem *p, CudnnOperations *out);
void cudnn_attention(CudnnMaker *m, const CudnnProblem *p, CudnnOperations *out);

/* Numbers that are handed over by value, in memory of the host. */
enum { CUDNN_SCALARS_MOST = 3 };
typedef struct CudnnScalars {
    char id[CUDNN_SCALARS_MOST];
    float value[CUDNN_SCALARS_MOST];
    int n;
} CudnnScalars;
CudnnScalars cudnn_attention_scalars(const CudnnProblem *p);

#endif
