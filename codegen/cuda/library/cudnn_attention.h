/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention and its gradient by cuDNN.  Called by cudnn.c. */
#ifndef SCRIMP_CODEGEN_CUDA_LIBRARY_CUDNN_ATTENTION_H
#define SCRIMP_CODEGEN_CUDA_LIBRARY_CUDNN_ATTENTION_H

#include "codegen/build/kernel.h"

/* LibraryCode.takes, of these two operations; false for any other. */
LibraryRule cudnn_takes_attention;
void cudnn_lower_attention(Lowering *l, const Node *n);
/* What the library may use for a call. */
int64_t cudnn_attention_workspace_most(void);
/* KernelText of a CudnnProblem. */
KernelText cudnn_write_problem;

#endif
