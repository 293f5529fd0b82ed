/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as CSV of buffers: refused with a message, or placed without an overlap. */
#include "fuzz_target.h"

#include "passes/memplan/buffer_csv.h"

#include <stdlib.h>

enum { MOST_PLACED = 60 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Pool *pool = pool_new();
    BufferCsv csv;
    const char *fault = NULL;
    bool ok = buffer_csv_read(pool, (const char *)data, size, &csv, &fault);
    if (ok == (fault != NULL))
        abort();
    if (ok && csv.n <= MOST_PLACED) {
        MemLayout layout = memplan_place(pool, csv.buffer, csv.n, 1);
        if (!memplan_check(pool, csv.buffer, csv.n, &layout, &fault))
            abort();
    }
    pool_free(pool);
    return 0;
}
