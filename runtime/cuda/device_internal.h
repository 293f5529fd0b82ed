/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A device, for the files of this folder. */
#ifndef SCRIMP_RUNTIME_CUDA_DEVICE_INTERNAL_H
#define SCRIMP_RUNTIME_CUDA_DEVICE_INTERNAL_H

#include "runtime/cuda/device.h"
#include "runtime/cuda/driver.h"

struct CudaDevice {
    const CudaDriver *cu;
    int ordinal;
    void *context, *stream;
    CudaAddress arena;
    int64_t bytes;    /* of the arena */
    int64_t staging;  /* bytes outside the arena for inputs on their way */
    int64_t at_start; /* in use when there was no more than the context */
    CudaIdentity is;
};

/* True for CUDA_OK; else a message that says what failed, with the numbers when the device has no
 * memory left. */
bool cuda_check(const CudaDevice *d, int error, const char *what, RtError *err);
/* A library has failed, as err says.  Few of them say that memory has run out, but start or run
 * with another error: where the device has little left, that is what err, and cuda_out_of_memory,
 * say.  False. */
bool cuda_library_failed(const CudaDevice *d, RtError *err);

#endif
