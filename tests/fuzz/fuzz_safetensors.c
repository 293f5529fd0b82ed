/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as a safetensors file: refused with a message, or tensors that can all be copied. */
#include "fuzz_target.h"

#include "runtime/safetensors.h"

#include <stdlib.h>
#include <string.h>

/* Copies to every type that is converted, into a block of exactly the right size. */
static void copy_all(const SafeTensor *t)
{
    int64_t elements;
    if (!rt_elements(t->rank, t->dims, &elements))
        abort();
    for (int d = 0; d < RT_OTHER; d++) {
        RtError err = {{0}};
        size_t bytes = (size_t)(elements * rt_dtype_bytes((RtDType)d));
        if (bytes > (size_t)t->bytes * 8)
            abort();
        void *dst = malloc(bytes ? bytes : 1);
        if (dst && !safetensors_copy(t, (RtDType)d, dst, &err) && !err.message[0])
            abort();
        free(dst);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    RtError err = {{0}};
    SafeFile *file = safetensors_parse(data, (int64_t)size, &err);
    if (!file) {
        if (!err.message[0])
            abort();
        return 0;
    }
    int64_t covered = 0;
    for (int64_t i = 0; i < safetensors_count(file); i++) {
        const SafeTensor *t = safetensors_at(file, i);
        const uint8_t *begin = t->data;
        if (safetensors_find(file, t->name) != t || begin < data || begin + t->bytes > data + size)
            abort();
        covered += t->bytes;
        copy_all(t);
    }
    if (covered > (int64_t)size)
        abort();
    safetensors_metadata(file, "format");
    safetensors_close(file);
    return 0;
}
