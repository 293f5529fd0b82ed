/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as a file of token ids: refused with a message, or batches of ids in the range. */
#include "fuzz_target.h"
#include "tests/support/data/fuzz_dataset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_dataset(&(DataSpec){.kind = "tokens",
                              .path = memory_file(data, size),
                              .batch = 2,
                              .length = 3,
                              .held_out = 0.4,
                              .held_out_is_part = true});
    return 0;
}
