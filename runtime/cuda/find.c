/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/cuda/find.h"

#include <dlfcn.h>
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

/* In the folder `in` of $CUDA_HOME and of the usual one. */
static void *find_in_toolkit(const char *in, const char *const *names)
{
    const char *home = getenv("CUDA_HOME"), *root[] = {home ? home : "", "/usr/local/cuda"};
    void *library = NULL;
    for (int i = 0; i < 2 && !library; i++) {
        char folder[4096];
        if (*root[i] && snprintf(folder, sizeof folder, "%s/%s", root[i], in) < (int)sizeof folder)
            library = open_in(folder, strlen(folder), names);
    }
    return library;
}

void *cuda_find_library(const char *const *names)
{
    void *library = cuda_find_listed(names);
    return library ? library : find_in_toolkit("lib64", names);
}

void *cuda_find_driver_or_stub(void)
{
    static const char *const driver[] = {"libcuda.so.1", NULL}, *const stub[] = {"libcuda.so",
                                                                                 NULL};
    void *library = cuda_find_listed(driver);
    return library ? library : find_in_toolkit("lib64/stubs", stub);
}

const char *cuda_find_symbols(void *library, const CudaSymbol *symbol, size_t n, void *table)
{
    for (size_t i = 0; i < n; i++) {
        void *address = dlsym(library, symbol[i].symbol);
        if (!address)
            return symbol[i].symbol;
        memcpy((char *)table + symbol[i].at, &address, sizeof address);
    }
    return NULL;
}

bool cuda_find_file(const CudaFile *f, void *table, int64_t *version, RtError *err)
{
    size_t (*ask)(void) = NULL;
    void *library = cuda_find_library(f->files);
    if (!library)
        return rt_error(err, "there is no %s library (%s): %s", f->name, f->files[0], f->way_out);
    const char *lacks = cuda_find_symbols(library, &(CudaSymbol){f->version, 0}, 1, &ask);
    *version = ask ? (int64_t)ask() : 0;
    if (ask && *version < f->oldest)
        return rt_error(err, "the %s library is too old: version %d.%d or newer is needed", f->name,
                        (int)(f->oldest / 10000), (int)(f->oldest / 100 % 100));
    lacks = lacks ? lacks : cuda_find_symbols(library, f->symbol, f->n_symbols, table);
    return !lacks || rt_error(err, "the %s library is damaged: it has no %s", f->name, lacks);
}
