/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/status.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool rt_error(RtError *err, const char *format, ...)
{
    if (!err)
        return false;
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return false;
}

bool rt_error_prefix(RtError *err, const char *format, ...)
{
    if (!err)
        return false;
    RtError old = *err;
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    size_t len = strlen(err->message);
    snprintf(err->message + len, sizeof err->message - len, ": %s", old.message);
    return false;
}

bool rt_mul(int64_t a, int64_t b, int64_t *out)
{
    return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, out);
}

bool rt_add(int64_t a, int64_t b, int64_t *out)
{
    return a >= 0 && b >= 0 && !__builtin_add_overflow(a, b, out);
}

static _Atomic uint64_t fail_at;

void rt_alloc_fail_at(uint64_t k)
{
    fail_at = k;
}

/* Counts down; true at the allocation that is to fail. */
static bool alloc_fails(void)
{
    return fail_at != 0 && --fail_at == 0;
}

void *rt_alloc(int64_t n, size_t size, RtError *err)
{
    int64_t bytes;
    if (!rt_mul(n, (int64_t)size, &bytes)) {
        rt_error(err, "out of memory: %lld elements of %zu bytes", (long long)n, size);
        return NULL;
    }
    void *p = alloc_fails() ? NULL : calloc(bytes ? (size_t)bytes : 1, 1);
    if (!p)
        rt_error(err, "out of memory: %lld bytes were not to be had", (long long)bytes);
    return p;
}
