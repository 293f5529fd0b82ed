/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as a file of CIFAR-10: refused with a message, or batches with labels below 10.  Bytes
 * that begin with label 0 or 1 are cut or filled up with zeros to one record or two: random lengths
 * are hardly ever a multiple of a record. */
#include "fuzz_target.h"
#include "tests/support/data/fuzz_dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[256], name[300];

static void remove_folder(void)
{
    unlink(name);
    rmdir(dir);
}

static void make_folder(const char *file)
{
    const char *base = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%s/fuzz-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(dir))
        abort();
    snprintf(name, sizeof name, "%s/data_batch_1.bin", dir);
    if (symlink(file, name) != 0)
        abort();
    atexit(remove_folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { RECORD = 3073 };
    static uint8_t records[2 * RECORD];
    size_t n = size && data[0] < 2 ? (size_t)(data[0] + 1) * RECORD : size;
    const uint8_t *bytes = data;
    if (n > size) { /* the rest is zeros */
        memset(records, 0, sizeof records);
        memcpy(records, data, size);
        bytes = records;
    }
    const char *file = memory_file(bytes, n);
    if (!dir[0])
        make_folder(file);
    check_dataset(&(DataSpec){
        .kind = "cifar10", .path = dir, .batch = 1, .held_out = 0.5, .held_out_is_part = true});
    return 0;
}
