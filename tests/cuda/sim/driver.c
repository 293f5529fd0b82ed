/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A simulated libcuda.so.1: one device in this process's memory.  What is put on a stream runs when
 * somebody waits for it, and not before, so that a missing wait shows.  Allocations hold NaNs and
 * end at an unreadable page.  Waiting, allocating and loading while a stream is captured are
 * errors, as is a process that is forked when the driver has started.
 *
 * SCRIMP_SIM_FAIL: the number of the launch that fails, counted from 1, as all that follow do.
 * SCRIMP_SIM_FULL: the name of a function, which says that memory is out.
 * SCRIMP_SIM_ORDER: forward (the default), reverse, or a number, from which the order of threads
 * and blocks is drawn.  SCRIMP_SIM_STREAM: the number of a stream, counted from 1 as they are made,
 * whose work runs as soon as what it waits for allows.  SCRIMP_SIM_BYTES: the device's memory, of
 * which kernels take what their images have.  SCRIMP_SIM_DRIVER: the driver's version (13000:
 * 13.0).  SCRIMP_SIM_FORK: processes may be forked. */
#include "driver_internal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A real driver and what it starts do not work in a child, and may have left locks there. */
static void forked(void)
{
    static const char text[] = "simulator: a process was forked when the driver had started\n";
    if (write(2, text, sizeof text - 1) > 0)
        _exit(99);
    _exit(98);
}

EXPORT int cuInit(unsigned flags)
{
    if (!getenv("SCRIMP_SIM_FORK"))
        pthread_atfork(NULL, NULL, forked);
    return flags ? BAD_VALUE : CUDA_OK;
}

EXPORT int cuDriverGetVersion(int *version)
{
    const char *text = getenv("SCRIMP_SIM_DRIVER");
    *version = text ? atoi(text) : 13000;
    return CUDA_OK;
}

EXPORT int cuGetErrorString(int error, const char **text)
{
    static const struct {
        int error;
        const char *text;
    } texts[] = {{CUDA_OK, "no error"},
                 {BAD_VALUE, "invalid argument"},
                 {CUDA_OUT_OF_MEMORY, "out of memory"},
                 {NO_CONTEXT, "invalid device context"},
                 {BAD_IMAGE, "device kernel image is invalid"},
                 {BAD_HANDLE, "invalid resource handle"},
                 {NOT_READY, "device not ready"},
                 {NOT_FOUND, "named symbol not found"},
                 {LAUNCH_FAILED, "unspecified launch failure"},
                 {CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"},
                 {CAPTURE_INVALIDATED, "operation failed due to a previous error during capture"}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].error == error) {
            *text = texts[i].text;
            return CUDA_OK;
        }
    return BAD_VALUE;
}

EXPORT int cuDeviceGetCount(int *n)
{
    *n = 1;
    return CUDA_OK;
}

EXPORT int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return ordinal == 0 ? CUDA_OK : BAD_VALUE;
}

EXPORT int cuDeviceGetName(char *name, int size, int device)
{
    snprintf(name, (size_t)size, "simulated device");
    return device == 0 ? CUDA_OK : BAD_VALUE;
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = attribute == CUDA_ATTRIBUTE_MAJOR ? 9 : 0;
    return device == 0 ? CUDA_OK : BAD_VALUE;
}

EXPORT int cuDevicePrimaryCtxRetain(void **context, int device)
{
    static char here;
    *context = &here;
    if (is_full(__func__))
        return CUDA_OUT_OF_MEMORY;
    return device == 0 ? CUDA_OK : BAD_VALUE;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device)
{
    return device == 0 ? CUDA_OK : BAD_VALUE;
}

enum { MOST_CONTEXTS = 4 };
static _Thread_local void *contexts[MOST_CONTEXTS];
static _Thread_local int n_contexts;

EXPORT int cuCtxPushCurrent_v2(void *context)
{
    if (!context || n_contexts == MOST_CONTEXTS)
        return BAD_VALUE;
    contexts[n_contexts++] = context;
    return CUDA_OK;
}

EXPORT int cuCtxPopCurrent_v2(void **context)
{
    if (n_contexts == 0)
        return NO_CONTEXT;
    *context = contexts[--n_contexts];
    return CUDA_OK;
}

int has_context(void)
{
    return n_contexts > 0;
}
