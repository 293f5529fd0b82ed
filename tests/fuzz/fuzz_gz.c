/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as a file that may be gzip: refused with a message, or what zlib's own reader unpacks;
 * and as an IDX file, gzip or not: refused, or an array of the size its header says. */
#include "fuzz_target.h"
#include "tests/support/data/fuzz_dataset.h"

#include "runtime/data_internal.h"
#include "runtime/unpack.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { LIMIT = 1 << 20 };

static void check_bytes(const char *path, const FileBytes *file)
{
    static char expected[LIMIT + 1];
    gzFile gz = gzopen(path, "rb");
    if (!gz || file->bytes > LIMIT)
        abort();
    int n = gzread(gz, expected, sizeof expected);
    gzclose_r(gz);
    if (n != file->bytes || memcmp(expected, file->data, (size_t)n) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = memory_file(data, size);
    FileBytes file;
    IdxArray array;
    RtError err = {{0}};
    int64_t n;
    if (file_read_gz(path, LIMIT, &file, &err))
        check_bytes(path, &file);
    else if (!err.message[0])
        abort();
    file_release(&file);
    err.message[0] = 0;
    if (idx_read(path, 1, &file, &array, &err)) {
        if (!rt_elements(array.rank, array.dims, &n) || array.data != file.data || n != file.bytes)
            abort();
    } else if (!err.message[0]) {
        abort();
    }
    file_release(&file);
    return 0;
}
