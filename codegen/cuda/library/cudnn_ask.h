/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What cuDNN would do with a convolution on a device that is not here: asked once for each, when a
 * step is planned, and again, from memory, when its plan is written.  Called by cudnn.c. */
#ifndef SCRIMP_CODEGEN_CUDA_LIBRARY_CUDNN_ASK_H
#define SCRIMP_CODEGEN_CUDA_LIBRARY_CUDNN_ASK_H

#include "runtime/cuda/cudnn_plan.h"

/* NULL: cuDNN is here and plans for devices; else what is missing, or has failed. */
const char *cudnn_missing(void);
int64_t cudnn_version(void); /* 0 where it is missing */

/* Its choice for a device of this architecture ("sm_90"); false where it has none, or is missing.
 */
bool cudnn_ask(const CudnnProblem *p, const char *arch, CudnnChoice *out);

#endif
