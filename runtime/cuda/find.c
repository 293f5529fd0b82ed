/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/cuda/find.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *open_in(const char *folder, const char *const *names)
{
    void *library = NULL;
    for (int i = 0; names[i] && !library; i++) {
        char path[4096];
        if (snprintf(path, sizeof path, "%s/%s", folder, names[i]) < (int)sizeof path)
            library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return library;
}

void *cuda_find_library(const char *const *names)
{
    const char *folder = getenv("SCRIMP_CUDA_PATH"), *home = getenv("CUDA_HOME");
    char lib[4096];
    void *library = folder ? open_in(folder, names) : NULL;
    for (int i = 0; names[i] && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library && home && snprintf(lib, sizeof lib, "%s/lib64", home) < (int)sizeof lib)
        library = open_in(lib, names);
    return library ? library : open_in("/usr/local/cuda/lib64", names);
}

bool cuda_find_symbol(void *library, const char *symbol, void *function)
{
    void *address = dlsym(library, symbol);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}
