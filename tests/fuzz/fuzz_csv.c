/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as a table with the columns a and b: refused with a message, or batches in range. */
#include "fuzz_target.h"
#include "tests/support/data/fuzz_dataset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const columns[] = {
        "x\tnumber\tmean\t1\t2\t\ta\tb\ny\tinteger\tdrop\t0\t0\t\tb",
        "c\tcategory\town\t0\t2\t\ta\tb\no\tone_hot\terror\t0\t1\t8\ta",
        "y\tcategory\tdrop\t0\t0\t\t1\nx\tnumber\terror\t0\t1\t\t*",
    };
    for (int i = 0; i < 3; i++)
        check_dataset(&(DataSpec){.kind = "csv",
                                  .path = memory_file(data, size),
                                  .batch = 1,
                                  .columns = columns[i],
                                  .separator = i == 2 ? ";" : NULL,
                                  .no_header = i == 2,
                                  .held_out = 0.4,
                                  .held_out_is_part = true});
    return 0;
}
