/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as an IDX file (MNIST): refused with a message, or an array that lies within them. */
#include "fuzz_target.h"

#include "runtime/data_internal.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    IdxArray array;
    RtError err = {{0}};
    if (!idx_parse(data, (int64_t)size, &array, &err)) {
        if (!err.message[0])
            abort();
        return 0;
    }
    int64_t n;
    if (!rt_elements(array.rank, array.dims, &n) || array.data + n != data + size)
        abort();
    return 0;
}
