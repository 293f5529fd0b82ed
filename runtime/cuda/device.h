/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A CUDA device and the arena on it.  Called by the command line, and by a compiled step. */
#ifndef SCRIMP_RUNTIME_CUDA_DEVICE_H
#define SCRIMP_RUNTIME_CUDA_DEVICE_H

#include "runtime/status.h"

typedef struct CudaDevice CudaDevice;

/* Device 0: its name, and its compute capability as compilers name it, "sm_90". */
typedef struct CudaIdentity {
    char name[128], arch[16];
} CudaIdentity;
/* A child process asks for it, so that this one may fork others afterwards: what is forked behind
 * the driver's start is not safe. */
bool cuda_device_here(CudaIdentity *out, RtError *err);
/* Device 0 of the driver (CUDA_VISIBLE_DEVICES says which that is), with a stream of its own, and
 * entered.  NULL with a message where there is no driver or no device. */
CudaDevice *cuda_device_open(RtError *err);
void cuda_device_close(CudaDevice *d); /* by a thread that has entered it; NULL is allowed */
/* The driver keeps one device's context at a time for each thread.  What uses d may be called
 * between these two; behind leave the thread has the one again that it had before. */
bool cuda_device_enter(const CudaDevice *d, RtError *err);
void cuda_device_leave(const CudaDevice *d);
/* Whether the driver loads kernels that need one of this version, 12000 for 12.0; a message if not.
 */
bool cuda_device_takes(const CudaDevice *d, int version, RtError *err);
const char *cuda_device_name(const CudaDevice *d);
/* Its compute capability as compilers name it: "sm_90". */
const char *cuda_device_arch(const CudaDevice *d);

/* Whether the last failure was that a device has no memory left. */
bool cuda_out_of_memory(void);

/* Bytes of the device. */
typedef struct CudaMemory {
    int64_t total;
    int64_t at_start; /* in use before anything was allocated: the context, and other programs */
    int64_t arena, staging;
    int64_t beside; /* what else is in use by now: kernels and graphs, if no other program grows */
} CudaMemory;
CudaMemory cuda_device_memory(const CudaDevice *d);

/* One allocation of exactly these bytes, all of it NaNs (0x7fc5ca1a).  False with the numbers, and
 * with what is left in *left, when the device has not as much; of other failures *left is -1. */
bool cuda_arena_map(CudaDevice *d, int64_t bytes, int64_t *left, RtError *err);
/* Makes all of it NaNs again, in the order of the stream. */
bool cuda_arena_poison(CudaDevice *d, RtError *err);
/* Copies bytes at an offset of the arena, in the order of the stream; `from` and `to` must stay
 * until cuda_wait. */
bool cuda_write(CudaDevice *d, int64_t offset, const void *from, int64_t bytes, RtError *err);
bool cuda_read(CudaDevice *d, int64_t offset, void *to, int64_t bytes, RtError *err);
bool cuda_wait(CudaDevice *d, RtError *err);

/* A tensor: where it lies in the arena, and in this program. */
typedef struct CudaPiece {
    int64_t offset, bytes;
    char *here;
} CudaPiece;
/* Copies all of them to the device, or from it, and waits. */
bool cuda_write_pieces(CudaDevice *d, const CudaPiece *p, int n, RtError *err);
bool cuda_read_pieces(CudaDevice *d, const CudaPiece *p, int n, RtError *err);

#endif
