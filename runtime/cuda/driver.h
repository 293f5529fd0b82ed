/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The CUDA driver, found when it is asked for: nothing links it, so that programs start on machines
 * without one.  Names, types and constants are those of the driver API (cuda.h, which is not needed
 * here).  Called by the other files of this folder. */
#ifndef SCRIMP_RUNTIME_CUDA_DRIVER_H
#define SCRIMP_RUNTIME_CUDA_DRIVER_H

#include "runtime/status.h"

#include <stddef.h>
#include <stdint.h>

typedef uint64_t CudaAddress; /* CUdeviceptr */

enum {
    CUDA_OK = 0,
    CUDA_INVALID_VALUE = 1,
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_ATTRIBUTE_MAJOR = 75, /* of the compute capability */
    CUDA_ATTRIBUTE_MINOR = 76,
    CUDA_STREAM_NON_BLOCKING = 1, /* does not wait for the default stream */
    CUDA_CAPTURE_THREAD_LOCAL = 1,
    CUDA_EVENT_DISABLE_TIMING = 2
};

/* CUDA_FUNCTION(name in this table, name in the library, parameters); all return 0 or an error. */
#define CUDA_FUNCTIONS(CUDA_FUNCTION)                                                              \
    CUDA_FUNCTION(init, cuInit, (unsigned flags))                                                  \
    CUDA_FUNCTION(version, cuDriverGetVersion, (int *version))                                     \
    CUDA_FUNCTION(error_string, cuGetErrorString, (int error, const char **text))                  \
    CUDA_FUNCTION(device_count, cuDeviceGetCount, (int *n))                                        \
    CUDA_FUNCTION(device, cuDeviceGet, (int *device, int ordinal))                                 \
    CUDA_FUNCTION(device_name, cuDeviceGetName, (char *name, int size, int device))                \
    CUDA_FUNCTION(device_attribute, cuDeviceGetAttribute, (int *value, int attribute, int device)) \
    CUDA_FUNCTION(context_retain, cuDevicePrimaryCtxRetain, (void **context, int device))          \
    CUDA_FUNCTION(context_release, cuDevicePrimaryCtxRelease_v2, (int device))                     \
    CUDA_FUNCTION(context_push, cuCtxPushCurrent_v2, (void *context))                              \
    CUDA_FUNCTION(context_pop, cuCtxPopCurrent_v2, (void **context))                               \
    CUDA_FUNCTION(memory_info, cuMemGetInfo_v2, (size_t * free_bytes, size_t * total_bytes))       \
    CUDA_FUNCTION(allocate, cuMemAlloc_v2, (CudaAddress * address, size_t bytes))                  \
    CUDA_FUNCTION(release, cuMemFree_v2, (CudaAddress address))                                    \
    CUDA_FUNCTION(to_device, cuMemcpyHtoDAsync_v2,                                                 \
                  (CudaAddress to, const void *from, size_t bytes, void *stream))                  \
    CUDA_FUNCTION(from_device, cuMemcpyDtoHAsync_v2,                                               \
                  (void *to, CudaAddress from, size_t bytes, void *stream))                        \
    CUDA_FUNCTION(on_device, cuMemcpyDtoDAsync_v2,                                                 \
                  (CudaAddress to, CudaAddress from, size_t bytes, void *stream))                  \
    CUDA_FUNCTION(allocate_host, cuMemHostAlloc, (void **address, size_t bytes, unsigned flags))   \
    CUDA_FUNCTION(release_host, cuMemFreeHost, (void *address))                                    \
    CUDA_FUNCTION(fill_words, cuMemsetD32Async,                                                    \
                  (CudaAddress to, unsigned word, size_t words, void *stream))                     \
    CUDA_FUNCTION(module_load, cuModuleLoadData, (void **module, const void *image))               \
    CUDA_FUNCTION(module_unload, cuModuleUnload, (void *module))                                   \
    CUDA_FUNCTION(module_function, cuModuleGetFunction,                                            \
                  (void **function, void *module, const char *name))                               \
    CUDA_FUNCTION(launch, cuLaunchKernel,                                                          \
                  (void *function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,              \
                   uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared_bytes,    \
                   void *stream, void **parameters, void **extra))                                 \
    CUDA_FUNCTION(stream_create, cuStreamCreate, (void **stream, unsigned flags))                  \
    CUDA_FUNCTION(stream_destroy, cuStreamDestroy_v2, (void *stream))                              \
    CUDA_FUNCTION(stream_wait, cuStreamSynchronize, (void *stream))                                \
    CUDA_FUNCTION(stream_wait_event, cuStreamWaitEvent,                                            \
                  (void *stream, void *event, unsigned flags))                                     \
    CUDA_FUNCTION(event_create, cuEventCreate, (void **event, unsigned flags))                     \
    CUDA_FUNCTION(event_destroy, cuEventDestroy_v2, (void *event))                                 \
    CUDA_FUNCTION(event_record, cuEventRecord, (void *event, void *stream))                        \
    CUDA_FUNCTION(event_wait, cuEventSynchronize, (void *event))                                   \
    CUDA_FUNCTION(event_elapsed, cuEventElapsedTime,                                               \
                  (float *milliseconds, void *begin, void *end))                                   \
    CUDA_FUNCTION(capture_begin, cuStreamBeginCapture_v2, (void *stream, int mode))                \
    CUDA_FUNCTION(capture_end, cuStreamEndCapture, (void *stream, void **graph))                   \
    CUDA_FUNCTION(graph_instantiate, cuGraphInstantiateWithFlags,                                  \
                  (void **executable, void *graph, unsigned long long flags))                      \
    CUDA_FUNCTION(graph_launch, cuGraphLaunch, (void *executable, void *stream))                   \
    CUDA_FUNCTION(graph_destroy, cuGraphDestroy, (void *graph))                                    \
    CUDA_FUNCTION(graph_executable_destroy, cuGraphExecDestroy, (void *executable))

typedef struct CudaDriver {
#define CUDA_FUNCTION(name, symbol, parameters) int(*name) parameters;
    CUDA_FUNCTIONS(CUDA_FUNCTION)
#undef CUDA_FUNCTION
} CudaDriver;

/* The driver's functions: of libcuda.so.1 in a folder that SCRIMP_CUDA_PATH lists, else of the
 * system's.  NULL, with a way out in err, where there is none, or one that lacks a function. */
const CudaDriver *cuda_driver(RtError *err);

#endif
