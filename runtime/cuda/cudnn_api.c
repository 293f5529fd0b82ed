/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/cuda/cudnn_api.h"

#include "runtime/cuda/find.h"

static bool fill(void *library, Cudnn *out, RtError *err)
{
    size_t (*version)(void);
    if (!cuda_find_symbol(library, "cudnnGetVersion", &version))
        return rt_error(err, "the cuDNN library is damaged: it has no cudnnGetVersion");
    out->version = (int64_t)version();
    if (out->version < CUDNN_OLDEST)
        return rt_error(err, "the cuDNN library is too old: version 9.11 or newer is needed");
#define CUDNN_FUNCTION(name, symbol, parameters)                                                   \
    if (!cuda_find_symbol(library, #symbol, &out->name))                                           \
        return rt_error(err, "the cuDNN library is damaged: it has no %s", #symbol);
    CUDNN_FUNCTIONS(CUDNN_FUNCTION)
#undef CUDNN_FUNCTION
    return true;
}

const Cudnn *cudnn_api(RtError *err)
{
    static const char *const names[] = {"libcudnn.so.9", NULL};
    static Cudnn table;
    static bool found;
    if (found)
        return &table;
    void *library = cuda_find_library(names);
    if (!library)
        rt_error(err, "there is no cuDNN library (libcudnn.so.9): install cuDNN 9.11 or newer, or "
                      "add its folder to SCRIMP_CUDA_PATH");
    found = library && fill(library, &table, err);
    return found ? &table : NULL;
}
