/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/cuda/library.h"

#include <string.h>

static const CudaLibrary *const libraries[] = {&cuda_cublaslt, &cuda_cudnn};

const CudaLibrary *cuda_library_named(const char *name, RtError *err)
{
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        if (strcmp(libraries[i]->name, name) == 0)
            return libraries[i];
    rt_error(err, "the step wants a library that is not known: %s", name);
    return NULL;
}
