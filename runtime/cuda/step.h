/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Steps that run on a CUDA device.  Called by the command line, and by a compiled step. */
#ifndef SCRIMP_RUNTIME_CUDA_STEP_H
#define SCRIMP_RUNTIME_CUDA_STEP_H

#include "runtime/abi.h"
#include "runtime/cuda/device.h"
#include "runtime/threads.h"

typedef struct CudaStep CudaStep;
CudaStep *cuda_step_load(CudaDevice *d, ScrimpStep *run, const ScrimpDeviceKernel *kernel, int n,
                         RtError *err);
void cuda_step_unload(CudaStep *s); /* NULL is allowed */
/* Puts a step on the stream: the first time launch by launch, from then on as one graph, captured
 * at the second. */
bool cuda_step_run(CudaStep *s, RtError *err);
/* Launches a step call by call, and adds what each takes on the device to the profile; waits for
 * it. Profiles of a step have one length. */
bool cuda_step_measure(CudaStep *s, RtProfile *profile, RtError *err);

#endif
