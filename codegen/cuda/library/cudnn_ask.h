/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What cuDNN would do with a problem on a device that is not here: asked once for each, when a
 * step is planned, and again, from memory, when its plan is written.  Called by cudnn.c and
 * cudnn_attention.c. */
#ifndef SCRIMP_CODEGEN_CUDA_LIBRARY_CUDNN_ASK_H
#define SCRIMP_CODEGEN_CUDA_LIBRARY_CUDNN_ASK_H

#include "passes/memplan/memplan.h"
#include "runtime/cuda/cudnn_plan.h"

/* NULL: cuDNN is here and plans for devices; else what is missing, or has failed. */
const char *cudnn_missing(void);
/* The same, for attention, once it was asked for. */
const char *cudnn_attention_missing(void);
int64_t cudnn_version(void); /* 0 where it is missing */

enum {
    CUDNN_TENSOR_ALIGN = 16, /* what its kernels can make use of */
    /* A workspace begins at a multiple of the plan's alignment, the library's at the next of its
     * own. */
    CUDNN_WORKSPACE_SLACK = CUDNN_WORKSPACE_ALIGN - MEMPLAN_ALIGN
};

/* Its choice for a device of this architecture ("sm_90"); false where it has none, or is missing.
 */
bool cudnn_ask(const CudnnProblem *p, const char *arch, CudnnChoice *out);
/* The workspace that one of the architectures of "sm_80,sm_90" needs at most; -1 where one has no
 * engine. */
int64_t cudnn_workspace(const CudnnProblem *p, const char *archs);

#endif
