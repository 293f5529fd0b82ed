/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as a text, of bytes and of characters: refused with a message, or batches of tokens in
 * the vocabulary. */
#include "fuzz_target.h"
#include "tests/support/data/fuzz_dataset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int chars = 0; chars < 2; chars++)
        check_dataset(&(DataSpec){.kind = "text",
                                  .path = memory_file(data, size),
                                  .batch = 2,
                                  .length = 3,
                                  .chars = chars,
                                  .held_out = 0.4,
                                  .held_out_is_part = true});
    return 0;
}
