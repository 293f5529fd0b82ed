/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/cuda/find.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *open_in(const char *folder, size_t length, const char *const *names)
{
    void *library = NULL;
    for (int i = 0; names[i] && !library; i++) {
        char path[4096];
        int n = snprintf(path, sizeof path, "%.*s/%s", (int)length, folder, names[i]);
        if (n < (int)sizeof path)
            library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return library;
}

void *cuda_find_listed(const char *const *names)
{
    const char *path = getenv("SCRIMP_CUDA_PATH");
    void *library = NULL;
    for (const char *at = path ? path : ""; *at && !library; at += *at == ':') {
        size_t length = strcspn(at, ":");
        library = length ? open_in(at, length, names) : NULL;
        at += length;
    }
    for (int i = 0; names[i] && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

void *cuda_find_library(const char *const *names)
{
    static const char usual[] = "/usr/local/cuda/lib64";
    const char *home = getenv("CUDA_HOME");
    char lib[4096];
    void *library = cuda_find_listed(names);
    if (!library && home && snprintf(lib, sizeof lib, "%s/lib64", home) < (int)sizeof lib)
        library = open_in(lib, strlen(lib), names);
    return library ? library : open_in(usual, strlen(usual), names);
}

bool cuda_find_symbol(void *library, const char *symbol, void *function)
{
    void *address = dlsym(library, symbol);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}
