/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/cuda/library.h"

#include <errno.h>
#include <stdlib.h>
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

/* "key value\n" at `at`, which ends before `end`; where the next line begins, or NULL. */
static const char *read_line(const char *at, const char *end, const PlanField *field)
{
    char text[24], *stop;
    size_t key = strlen(field->key);
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    if (!newline || (size_t)(newline - at) <= key + 1 || memcmp(at, field->key, key) != 0 ||
        at[key] != ' ' || (size_t)(newline - at) - key - 1 >= sizeof text)
        return NULL;
    size_t n = (size_t)(newline - at) - key - 1;
    memcpy(text, at + key + 1, n);
    text[n] = '\0';
    errno = 0;
    *field->value = strtoll(text, &stop, 10);
    return *stop || errno ? NULL : newline + 1;
}

const char *cuda_plan_part(const char *at, const char *end, const PlanField *field, int n)
{
    for (int i = 0; i < n && at; i++)
        at = read_line(at, end, &field[i]);
    return at;
}

bool cuda_plan_read(const char *plan, int64_t bytes, const PlanField *field, int n, RtError *err)
{
    const char *end = plan + bytes;
    return cuda_plan_part(plan, end, field, n) == end ||
           rt_error(err, "the library's plan cannot be read");
}
