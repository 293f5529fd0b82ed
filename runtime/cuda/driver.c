/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/cuda/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *open_library(RtError *err)
{
    char path[4096];
    const char *folder = getenv("SCRIMP_CUDA_PATH");
    void *library = NULL;
    if (folder && snprintf(path, sizeof path, "%s/libcuda.so.1", folder) < (int)sizeof path)
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        rt_error(err, "this machine has no CUDA driver (libcuda.so.1): install NVIDIA's driver");
    return library;
}

static bool find(void *library, const char *symbol, void *function, RtError *err)
{
    void *address = dlsym(library, symbol);
    memcpy(function, &address, sizeof address);
    return address ||
           rt_error(err, "the CUDA driver is too old: it has no %s (version 12.0 has)", symbol);
}

const CudaDriver *cuda_driver(RtError *err)
{
    static CudaDriver driver;
    static bool found;
    if (found)
        return &driver;
    void *library = open_library(err);
    if (!library)
        return NULL;
#define CUDA_FUNCTION(name, symbol, parameters)                                                    \
    if (!find(library, #symbol, &driver.name, err))                                                \
        return NULL;
    CUDA_FUNCTIONS(CUDA_FUNCTION)
#undef CUDA_FUNCTION
    found = true;
    return &driver;
}
