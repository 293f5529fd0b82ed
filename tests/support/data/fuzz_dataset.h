/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Bytes as a file that has a path, and the batches of a data set that was opened. */
#ifndef SCRIMP_TESTS_FUZZ_DATASET_H
#define SCRIMP_TESTS_FUZZ_DATASET_H

#include "runtime/data.h"

#include <stddef.h>
#include <stdint.h>

/* The same file in memory each time, with these bytes. */
const char *memory_file(const uint8_t *data, size_t size);
/* Opens it and looks at it, or sees that the refusal has a message. */
void check_dataset(const DataSpec *spec);

#endif
