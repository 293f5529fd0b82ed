/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A CUDA device, the arena on it, and steps that run there.  Called by the command line. */
#ifndef SCRIMP_RUNTIME_CUDA_DEVICE_H
#define SCRIMP_RUNTIME_CUDA_DEVICE_H

#include "runtime/abi.h"
#include "runtime/status.h"
#include "runtime/threads.h"

typedef struct CudaDevice CudaDevice;

/* The compute capability of device 0 as compilers name it: "sm_90".  It makes no context, so that
 * processes may be forked behind it. */
bool cuda_arch_here(char *arch, size_t size, RtError *err);
/* Device 0 of the driver (CUDA_VISIBLE_DEVICES says which that is), with a stream of its own.  NULL
 * with a message where there is no driver or no device. */
CudaDevice *cuda_device_open(RtError *err);
void cuda_device_close(CudaDevice *d); /* NULL is allowed */
/* Whether the driver loads kernels that need one of this version, 12000 for 12.0; a message if not.
 */
bool cuda_device_takes(const CudaDevice *d, int version, RtError *err);
const char *cuda_device_name(const CudaDevice *d);
/* Its compute capability as compilers name it: "sm_90". */
const char *cuda_device_arch(const CudaDevice *d);

/* One allocation of exactly these bytes, all of it NaNs (0x7fc5ca1a).  False with the numbers, and
 * with what is left in *left, when the device has not as much; of other failures *left is -1. */
bool cuda_arena_map(CudaDevice *d, int64_t bytes, int64_t *left, RtError *err);
/* Copies bytes at an offset of the arena, in the order of the stream; `from` and `to` must stay
 * until cuda_wait. */
bool cuda_write(CudaDevice *d, int64_t offset, const void *from, int64_t bytes, RtError *err);
bool cuda_read(CudaDevice *d, int64_t offset, void *to, int64_t bytes, RtError *err);
bool cuda_wait(CudaDevice *d, RtError *err);

typedef struct CudaStep CudaStep;
CudaStep *cuda_step_load(CudaDevice *d, ScrimpStep *run, const ScrimpDeviceKernel *kernel, int n,
                         RtError *err);
void cuda_step_unload(CudaStep *s); /* NULL is allowed */
/* Puts a step on the stream: the first time launch by launch, from then on as one graph, captured
 * at the second. */
bool cuda_step_run(CudaStep *s, RtError *err);
/* Launches a step call by call, waits for each, and adds its seconds to the profile. */
bool cuda_step_measure(CudaStep *s, RtProfile *profile, RtError *err);

#endif
