/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/cuda/driver.h"

#include "runtime/cuda/find.h"

const CudaDriver *cuda_driver(RtError *err)
{
    static const char *const names[] = {"libcuda.so.1", NULL};
#define CUDA_FUNCTION(name, symbol, parameters) {#symbol, offsetof(CudaDriver, name)},
    static const CudaSymbol symbols[] = {CUDA_FUNCTIONS(CUDA_FUNCTION)};
#undef CUDA_FUNCTION
    static CudaDriver driver;
    static bool found;
    if (found)
        return &driver;
    void *library = cuda_find_listed(names);
    if (!library) {
        rt_error(err, "this machine has no CUDA driver (libcuda.so.1): install NVIDIA's driver");
        return NULL;
    }
    const char *lacks =
        cuda_find_symbols(library, symbols, sizeof symbols / sizeof *symbols, &driver);
    if (lacks)
        rt_error(err, "the CUDA driver is too old: it has no %s (version 12.0 has)", lacks);
    found = !lacks;
    return found ? &driver : NULL;
}
