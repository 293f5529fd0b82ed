/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as a .npy file: refused with a message, or an array that lies within them. */
#include "fuzz_target.h"

#include "runtime/npy.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    NpyArray array;
    RtError err = {{0}};
    if (!npy_parse(data, (int64_t)size, &array, &err)) {
        if (!err.message[0])
            abort();
        return 0;
    }
    int64_t n;
    if (!rt_elements(array.rank, array.dims, &n) ||
        array.data + n * npy_type_bytes(array.type) != data + size)
        abort();
    return 0;
}
