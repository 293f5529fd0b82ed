/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as a .npz file: refused with a message, or arrays whose every byte can be read. */
#include "fuzz_target.h"

#include "runtime/npz.h"

#include <stdlib.h>

static void read_array(Npz *npz, int64_t i)
{
    NpyArray a;
    RtError err = {{0}};
    int64_t elements;
    if (!npz_array(npz, i, &a, &err)) {
        if (!err.message[0])
            abort();
        return;
    }
    if (!rt_elements(a.rank, a.dims, &elements))
        abort();
    volatile unsigned char sum = 0;
    for (int64_t k = 0; k < elements * npy_type_bytes(a.type); k++)
        sum = (unsigned char)(sum + a.data[k]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    RtError err = {{0}};
    Npz *npz = npz_parse(data, (int64_t)size, &err);
    if (!npz) {
        if (!err.message[0])
            abort();
        return 0;
    }
    for (int64_t i = 0; i < npz_count(npz); i++)
        if (npz_name(npz, i))
            read_array(npz, i);
    npz_close(npz);
    return 0;
}
